"""Compares jobs with the first of them: which rows correspond, which changed, and by how much."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from ianvs.base.errors import IanvsError, closest
from ianvs.exam.metrics.metric_columns import columns_named
from ianvs.results.comparing.pairing import RowPair, pair_rows
from ianvs.results.comparing.sides import Side, SideRow
from ianvs.results.report.values import Value
from ianvs.results.stats import Difference, Summary, paired_difference, unpaired_difference

LEVEL = 0.95
_ROUNDING = 1e-9  # tolerates rounding: a score that fell from .92 to .91 is worse by .01, not by more

Verdict = Literal["better", "worse", "equal", "other", "lost", "new"]


@dataclass(frozen=True)
class Change:
    """A metric of a row on both sides.

    Attributes:
        before: Mean over the compared seeds; None if the side has none.
        after: The same on the other side.
        pairs: Number of common seeds over which the difference is paired; 0: it is between means of other seeds, or of
            a report.
        difference: after - before, with its interval.
        higher_is_better: None if unknown.
    """

    metric: str
    before: float | None
    after: float | None
    pairs: int
    difference: Difference | None
    higher_is_better: bool | None

    @property
    def verdict(self) -> Verdict:
        """The direction of the change; `difference.separated` says whether chance explains it.

        "other": unknown direction.
        """
        if self.difference is None:
            return "new" if self.before is None else "lost"
        if self.difference.mean == 0:
            return "equal"
        if self.higher_is_better is None:
            return "other"
        return "better" if (self.difference.mean > 0) == self.higher_is_better else "worse"

    @property
    def worse_by(self) -> float:
        """By how much it became worse, in the unit of the metric; below 0: better. inf: it has no value any more."""
        if self.difference is None:
            return inf if self.after is None else -inf
        return -self.difference.mean if self.higher_is_better else self.difference.mean


def change_of(pair: RowPair, metric: str, higher_is_better: bool | None) -> Change | None:
    """Return the change of a metric; None if neither side has a value."""
    before, after = pair.before, pair.after
    old, new = (dict(zip(row.seeds, row.values.get(metric, ()), strict=False)) for row in (before, after))
    both = [(x, y) for seed, x in old.items() if _is_finite(x) and _is_finite(y := new.get(seed))]
    if both:
        first, second = zip(*both, strict=True)
        difference = paired_difference(second, first, LEVEL)
        return Change(metric, sum(first) / len(both), sum(second) / len(both), len(both), difference, higher_is_better)
    means = [row.means.get(metric, Summary(None, None, 0)) for row in (before, after)]
    if means[0].mean is None and means[1].mean is None:
        return None
    return Change(metric, means[0].mean, means[1].mean, 0, unpaired_difference(means[1], means[0]), higher_is_better)


def columns_meant(metric: str, columns: Iterable[str]) -> list[str]:
    """Return those of `columns` that a user's `metric` refers to. Raises IanvsError if there are none."""
    titles = list(dict.fromkeys(columns))
    if not (matching := columns_named(metric, titles)):
        raise IanvsError(
            f"unknown metric '{metric}'.{closest(metric, titles)} There are: {', '.join(titles)}.",
            code="unknown-metric",
        )
    return matching


def _is_finite(value: float | None) -> bool:
    return value is not None and isfinite(value)


@dataclass(frozen=True)
class ComparedRow:
    """A pair of rows. changes: one for each metric that either side has."""

    pair: RowPair
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class SideComparison:
    """One side compared with the first."""

    first: Side
    other: Side
    rows: tuple[ComparedRow, ...]
    only_first: tuple[SideRow, ...]
    only_other: tuple[SideRow, ...]


@dataclass(frozen=True)
class Worse:
    """A row that became worse than allowed."""

    side: str
    row: RowPair
    change: Change

    def __str__(self) -> str:
        change = self.change
        where = f"{self.side}: {self.row.before.name}: {change.metric}"
        if change.worse_by == inf:
            return f"{where} was {change.before:.4g} and is not there any more"
        return f"{where} {change.before:.4g} -> {change.after:.4g}, worse by {change.worse_by:.4g}"


@dataclass(frozen=True)
class Comparison:
    """Each further side compared with the first; as plain data by `as_dict`, flat by `records`."""

    contrasts: tuple[SideComparison, ...]

    def worse(self, metric: str, by: float) -> list[Worse]:
        """Return every row whose mean of `metric` is worse by more than `by`, or is missing.

        Raises IanvsError if no row can be judged: the metric is unknown, has no direction, or no rows correspond.
        """
        named = columns_meant(
            metric,
            (title for contrast in self.contrasts for title in (*contrast.first.metrics, *contrast.other.metrics)),
        )
        judged = [
            Worse(contrast.other.name, row.pair, change)
            for contrast in self.contrasts
            for row in contrast.rows
            for change in row.changes
            if change.metric in named
        ]
        if not judged:
            raise IanvsError(
                f"{metric} can't be compared: no row on one side with it has a counterpart on the other.",
                code="unfit-results",
            )
        if any(row.change.higher_is_better is None for row in judged):
            why = f"whether a higher {metric} is better is not known from a report, nor of a metric that does not say"
            raise IanvsError(
                f"{why}. Name a workspace first, or give the metric `higher_is_better`.", code="unfit-results"
            )
        return [row for row in judged if row.change.worse_by - by > _ROUNDING * max(1.0, abs(by))]

    def records(self) -> Iterator[dict[str, Value]]:
        """Yield a record for each row and metric."""
        for contrast in self.contrasts:
            for row in contrast.rows:
                about = _about(contrast, row.pair)
                yield from ({**about, **_numbers(change)} for change in row.changes)

    def as_dict(self) -> dict[str, object]:
        """Return the comparison as a JSON value."""
        return {"level": LEVEL, "comparisons": [_contrast(contrast) for contrast in self.contrasts]}


def compare_sides(sides: Sequence[Side]) -> Comparison:
    """Compare sides. Raises IanvsError for fewer than two."""
    if len(sides) < 2:
        raise IanvsError("a comparison needs two: workspaces, job files or reports.", code="invalid-argument")
    return Comparison(tuple(_against(sides[0], other) for other in sides[1:]))


def _against(first: Side, other: Side) -> SideComparison:
    pairs, only_first, only_other = pair_rows(first, other)
    metrics = dict(first.metrics)
    for title, higher in other.metrics.items():
        if metrics.get(title) is None:
            metrics[title] = higher

    def compared(pair: RowPair) -> ComparedRow:
        changes = (change_of(pair, title, higher) for title, higher in metrics.items())
        return ComparedRow(pair, tuple(change for change in changes if change is not None))

    return SideComparison(first, other, tuple(map(compared, pairs)), tuple(only_first), tuple(only_other))


def _about(contrast: SideComparison, pair: RowPair) -> dict[str, Value]:
    return {
        "first": contrast.first.name,
        "other": contrast.other.name,
        "algorithm": pair.before.algorithm,
        "testenv": pair.before.testenv,
        "hyperparameters": pair.before.settings_text,
        "same_cases": len(pair.same),
        "seeds": len(pair.seeds),
        "differs": "; ".join(pair.differs),
    }


def _numbers(change: Change) -> dict[str, Value]:
    return {
        "metric": change.metric,
        "higher_is_better": change.higher_is_better,
        "first_mean": change.before,
        "other_mean": change.after,
        "difference": getattr(change.difference, "mean", None),
        **{name: getattr(change.difference, name, None) for name in ("low", "high", "p", "separated")},
        "pairs": change.pairs,
        "verdict": change.verdict,
    }


def _contrast(contrast: SideComparison) -> dict[str, object]:
    return {
        "first": contrast.first.name,
        "other": contrast.other.name,
        "rows": [
            {
                **_named(row.pair.before),
                "seeds": list(row.pair.seeds),
                "same": list(row.pair.same),
                "differs": list(row.pair.differs),
                "metrics": [_numbers(change) for change in row.changes],
            }
            for row in contrast.rows
        ],
        "only_first": [{**_named(row), "status": row.status} for row in contrast.only_first],
        "only_other": [{**_named(row), "status": row.status} for row in contrast.only_other],
    }


def _named(row: SideRow) -> dict[str, object]:
    return {"algorithm": row.algorithm, "testenv": row.testenv, "hyperparameters": dict(row.settings)}
