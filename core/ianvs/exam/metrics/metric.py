"""The interface of metrics: pure functions with a name, a direction and a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue, closest, one_line
from ianvs.base.types import ScoreMatrix
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.confusion import ClassCounts, class_indices, confusion_matrix
from ianvs.exam.metrics.label_pictures import LabelPictures
from ianvs.exam.metrics.packed_replies import Replies
from ianvs.exam.metrics.ragged import Ragged

Array = NDArray[np.float64]
Labels = NDArray[Any] | LabelPictures | Replies | Ragged
REFERENCES = ("untrained", "joint", "single_task", "stateless")
Unit = Literal["change", "score", "ratio", "relative change"]


@dataclass(frozen=True)
class EvaluationRecord:
    """What is stored of one evaluation: true and predicted labels, or only their confusion matrix.

    Attributes:
        classes: Names of the classes.
        y_true: (N,) labels. For masks LabelPictures (label_pictures.py) if the metric reads them, else None: only
            counts are stored. For conversations Replies (replies.py): N lists of replies, one for each turn.
        y_pred: (N,) predictions, as y_true. A missing reply is None.
        counts: (C, C) int64, rows truth, columns prediction. For masks (C, C+1): the last column counts pixels for
            which "ignore" was predicted. None: counted from y_true and y_pred.
        labels: Class indices of the test set, in the order of its class list; None: all.
        earlier: Class indices taught before the round of the test set; None: it belongs to no round.
        probe: (N,) class indices that a linear probe on the learner's frozen features predicts; None: there is no
            probe.
        extras: (N, ...) each, further predictions by name (ianvs.base.types.Predictions).
        unseen: (N,) bool, samples of what was not taught by then, for which -1 is the right prediction; None: the exam
            has no such prediction.
        seen: Class indices taught by then, ascending; None: classes do not arrive over time.
        seen_before: Those taught before the last round.
        seen_first: Those of the first round.
        positions: (N,) positions among the predicted samples, if test sets share samples; else None.
        test: Name of the test set.
        tests: Names of all test sets.
        columns: What the dataset provides by name for metrics that name it (`Metric.needs`). Arrays have a row per
            sample; anything else is about the whole dataset, such as `hierarchy`.
        rows: (N, ...) each, what metrics computed for each sample, by the names of the metrics; see `by_sample`.
    """

    classes: tuple[str, ...]
    y_true: Labels | None = None
    y_pred: Labels | None = None
    counts: NDArray[np.int64] | None = None
    labels: tuple[int, ...] | None = None
    earlier: tuple[int, ...] | None = None
    probe: NDArray[np.int64] | None = None
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    unseen: NDArray[np.bool_] | None = None
    seen: tuple[int, ...] | None = None
    seen_before: tuple[int, ...] | None = None
    seen_first: tuple[int, ...] | None = None
    positions: NDArray[np.int64] | None = None
    test: str = ""
    tests: tuple[str, ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)
    rows: dict[str, NDArray[Any]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def by_sample(self, name: str, compute: Callable[[EvaluationRecord], NDArray[Any]]) -> NDArray[Any]:
        """Return (N, ...) what a metric computes for each sample.

        A record of some of the samples reuses the rows of the whole record.

        Args:
            name: The name of the metric.
            compute: Called once for all samples.
        """
        if name not in self.rows:
            self.rows[name] = compute(self)
        return self.rows[name]

    def column(self, name: str) -> Any:
        """Return the column `name` of the dataset.

        Raises:
            InvalidValue: The dataset has no such column.
        """
        if name not in self.columns:
            raise InvalidValue(self.no_column(name), "unfit-metric")
        return self.columns[name]

    def no_column(self, name: str) -> str:
        """Return the message for a dataset without the column `name`."""
        listed = f"It has: {one_line(list(self.columns))}." if self.columns else "It has none."
        remedy = "A dataset has `hierarchy`, where that is set, and what its function returns as `columns`."
        return f"the dataset has no column '{name}'.{closest(name, self.columns)} {listed} {remedy}"

    @property
    def hierarchy(self) -> Any:
        """The column of this name, as ianvs 0.3 called it."""
        return self.columns.get("hierarchy")

    @property
    def class_indices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(true, predicted) class indices, C where "unseen" was predicted. Raises ValueError for other labels."""
        if self.y_true is None or self.y_pred is None:
            raise ValueError("neither labels nor a confusion matrix are stored")
        return class_indices(self.y_true, self.y_pred, len(self.classes), none=self.unseen is not None)

    @cached_property
    def class_counts(self) -> ClassCounts:
        """Counts per class, computed without the confusion matrix."""
        if self.counts is not None:
            return ClassCounts.of_matrix(self.counts)
        return ClassCounts.of_labels(*self.class_indices, len(self.classes))

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """(C, C) int64: [i, j] samples of class i that were predicted as class j.

        (C, C+1) for masks, and where "unseen" may be predicted: the last column counts predictions of no class. With
        many classes it is large; `class_counts` is enough for most scores.
        """
        if self.counts is not None:
            return self.counts
        if self.y_true is None or self.y_pred is None:
            raise ValueError("neither labels nor a confusion matrix are stored")
        return confusion_matrix(self.y_true, self.y_pred, len(self.classes), none=self.unseen is not None)

    def forget(self) -> None:
        """Free the memory of the counts."""
        for name in ("confusion", "class_counts"):
            vars(self).pop(name, None)


def has_rows(column: object) -> bool:
    """Return whether a column of an EvaluationRecord has a row for each sample."""
    return isinstance(column, np.ndarray | LabelPictures | Replies | Ragged)


class PartialRecord(EvaluationRecord):
    """Some of a record's samples. A column is selected at its first access, since a metric reads few columns."""

    _whole: EvaluationRecord
    _chosen: NDArray[np.bool_] | NDArray[np.int64]

    @classmethod
    def select(cls, whole: EvaluationRecord, rows: NDArray[np.bool_] | NDArray[np.int64]) -> PartialRecord:
        """Return a record of some samples. rows: (N,) bool, or (n,) positions."""
        part = object.__new__(cls)
        attributes = vars(whole)
        vars(part).update({name: value for name, value in attributes.items() if name not in _NOT_SHARED})
        vars(part).update(_whole=whole, _chosen=rows, rows={}, counts=None)
        return part

    def by_sample(self, name: str, compute: Callable[[EvaluationRecord], NDArray[Any]]) -> NDArray[Any]:
        """Return (N, ...) what a metric computes for each sample; from the whole record, if it has that."""
        if name not in self.rows:
            rows = self._whole.rows.get(name) if "_whole" in vars(self) else None  # changed copies don't have it
            self.rows[name] = compute(self) if rows is None else rows[self._chosen]
        return self.rows[name]


def _column_of_some(part: PartialRecord, name: str) -> Any:
    values_of_all = getattr(part._whole, name)
    if isinstance(values_of_all, Mapping):
        return {key: values[part._chosen] if has_rows(values) else values for key, values in values_of_all.items()}
    return None if values_of_all is None else values_of_all[part._chosen]


_OF_SAMPLES = ("y_true", "y_pred", "probe", "unseen", "positions", "extras", "columns")
for _name in _OF_SAMPLES:
    _cached = cached_property(partial(_column_of_some, name=_name))
    _cached.__set_name__(PartialRecord, _name)
    setattr(PartialRecord, _name, _cached)
_NOT_SHARED = {*_OF_SAMPLES, "confusion", "class_counts", "_whole", "_chosen"}


Fed = Callable[[int, EvaluationRecord], float | Mapping[str, float]]


@dataclass(frozen=True)
class Metric:
    """A metric that the leaderboard can show.

    `level` is one of:

    - "score": a function of EvaluationRecord. It returns a number, or a mapping from parts to numbers.
    - "matrix": a function of ScoreMatrix. It returns a number, nan where undefined.
    - "stream": a function of StreamRecord, likewise.
    - "system": measured by the runner; it has no function.
    - "reported": its values come from the contract; it has no function.

    Formulas over a matrix are written for scores of which more is better. For an error (less is better) they get the
    negated matrix, and `unit` says how their value is converted:

    - "change": a difference of scores, a gain or a loss: not converted, so BWT < 0 and FM > 0 still mean forgetting.
    - "score": a mean or an extreme of scores: negated, an error again, and less is better.
    - "ratio": a ratio of scores: not converted. It is the ratio of errors, and less is better.
    - "relative change": a change divided by a score: negated, since the divisor was negative.
    """

    name: str
    level: str
    summary: str  # the first line of the docstring
    higher_is_better: bool = True
    source: str = ""  # citation
    formula: str = ""
    aliases: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # reference runs, `REFERENCES`; for a "score", columns of the dataset
    function: Callable[..., float | Mapping[str, float]] | None = field(default=None, compare=False, repr=False)
    pooled: bool = False  # for a "score" over the samples of all test sets together: its matrix has one column
    asks: tuple[str, ...] = ()  # for a "score": evaluation tasks whose results it reads, which the testenv must list
    over_rounds: Literal["last", "mean"] = (
        "last"  # for a "score": the column is the value of the last round, or the mean of all
    )
    partial: bool = False  # for a "score" that is undefined for some test sets: the column is the mean over the others
    pictures: bool = False  # for a "score" that reads masks instead of their confusion matrix
    mapping: bool = False  # for a "score" with several numbers (per class): shown in reports, not used for ranking
    # For a "score" that is a mean over samples: their values, (N,). Means over some of them need no new computation.
    mean_of: Callable[[EvaluationRecord], NDArray[Any]] | None = field(default=None, compare=False, repr=False)
    # For a "score" that is costly to compute, with a model: what it was computed with.
    about: Callable[[], Mapping[str, str]] | None = field(default=None, compare=False, repr=False)
    # For a "score" with state over rounds: makes a function that is called with (round, evaluation) of one test set in
    # order and returns the score after each. `function` computes that of a single evaluation.
    accumulate: Callable[[], Fed] | None = field(default=None, compare=False, repr=False)
    # With its options.
    configure: Callable[[MetricSpec], Metric] | None = field(default=None, compare=False, repr=False)
    # The metric computed on a device, "auto", "cpu" or "cuda"; None if it makes no difference.
    on_device: Callable[[str], Metric] | None = field(default=None, compare=False, repr=False)
    # For a "stream" metric of future chunks: the metric at one shift, which a testenv writes after an @.
    at_shift: Callable[[Metric, int], Metric] | None = field(default=None, compare=False, repr=False)
    # What is not installed, and the remedy.
    missing: Callable[[], str | None] | None = field(default=None, compare=False, repr=False)
    direction_known: bool = True  # False: the direction is unknown; `higher_is_better` is then a guess for sorting
    # For a "matrix": the type of the value, its (T,) values after each round, and whether `untrained` is a score file's
    # row R0, if there is one. series is None if the source defines only the value after the last round.
    unit: Unit = "change"
    series: Callable[[ScoreMatrix], Array] | None = field(default=None, compare=False, repr=False)
    first_row: bool = False

    @property
    def direction(self) -> bool | None:
        """Whether higher is better; None: unknown."""
        return self.higher_is_better if self.direction_known else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the dataset that a "score" reads."""
        return tuple(name for name in self.needs if name not in REFERENCES)

    def directed_by(self, score: Metric) -> Metric:
        """Return a "matrix" metric with the direction of `score`: a mean of errors is an error."""
        turned = not score.higher_is_better and self.unit in ("score", "ratio")
        return replace(self, higher_is_better=not self.higher_is_better) if turned else self
