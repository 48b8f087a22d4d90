"""Columns of metrics: their names, and which score a metric over a score matrix is computed from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.metric import Metric

_OF = " of "


@dataclass(frozen=True)
class MetricColumn:
    """A column of a metric of a testenv.

    Attributes:
        name: Of the column.
        score: The score that a metric over a matrix reads, else "".
        metric: The metric; the column has its direction.
        key: Under which its values are stored.
    """

    name: str
    spec: MetricSpec
    metric: Metric
    key: str
    score: str = ""

    @property
    def is_stored(self) -> bool:
        """Whether its values are stored with each case; else they are computed from those of scores."""
        return self.metric.level == "score" or (self.metric.level == "matrix" and self.spec.url is not None)


def part_column(score: str, part: str) -> str:
    """Return the column of one part of a score that yields several numbers: `recalls[cat]`."""
    return f"{score}[{part}]"


def whole_of(column: str) -> str:
    """Return the score that `column` shows a part of; "" if it shows none."""
    return column.partition("[")[0] if column.endswith("]") else ""


def metric_columns(exams: Iterable[Sequence[tuple[MetricSpec, Metric, str]]]) -> list[tuple[MetricColumn, ...]]:
    """Return the columns of each exam of a job from (spec, metric, key of its values).

    The exam's first score gives "BWT", another "BWT of f1": a column keeps its name if metrics are appended. If the
    exams of a job have different first scores, all names contain their score, so that a name has one meaning in all
    exams. A score with several numbers is the first only where all scores are such.
    """
    exams, first = list(exams), []
    for exam in exams:
        scores = sorted((metric.mapping, row) for row, (_, metric, _) in enumerate(exam) if metric.level == "score")
        first.append(exam[scores[0][1]][0].name if scores else "")
    plain = {"", *first} if len({*first} - {""}) < 2 else {""}
    exam_columns = []
    for exam, default in zip(exams, first, strict=True):
        scored = {spec.name: metric for spec, metric, _ in exam if metric.level == "score"}
        columns = []
        for spec, metric, key in exam:
            score = (spec.score or default) if metric.level == "matrix" else ""
            if score in scored:
                metric = metric.directed_by(scored[score])
            name = spec.name if score in plain else f"{spec.name}{_OF}{score}"
            columns.append(MetricColumn(name, spec, metric, key, score))
        exam_columns.append(tuple(columns))
    return exam_columns


def columns_named(name: str, columns: Iterable[str]) -> list[str]:
    """Return the columns for a user's `name`: the one with this name, else all of the metric, of any score.

    "BWT of accuracy" also means the column "BWT" if accuracy is the first score, as in earlier versions. A score with
    several numbers stands for the columns of its parts.
    """
    columns, (base, score_given, _) = list(columns), name.partition(_OF)
    if name in columns:
        return [name]
    return (
        [base]
        if score_given and base in columns
        else [column for column in columns if name in (column.partition(_OF)[0], whole_of(column))]
    )
