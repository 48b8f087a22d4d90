"""What a metric is: a pure function with a name, a direction and a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Evidence", "MatrixInputs", "Metric"]


@dataclass(frozen=True)
class Evidence:
    """What is stored of one evaluation: true and predicted labels, or only their confusion matrix.

    y_true, y_pred: (N,) labels, None where only counts are kept (label pictures).
    counts: (C, C) int64, rows truth, columns prediction; of label pictures (C, C+1), the last column being pixels for
    which "ignore" was predicted. None: counted from y_true and y_pred when asked for.
    labels: class indices that the test set is about, in the order of its class list; None: all.
    earlier: class indices that were taught in rounds before the one that the test set belongs to; None: it belongs to
    no round.
    """

    classes: tuple[str, ...]
    y_true: NDArray[Any] | None = None
    y_pred: NDArray[Any] | None = None
    counts: NDArray[np.int64] | None = None
    labels: tuple[int, ...] | None = None
    earlier: tuple[int, ...] | None = None

    @cached_property
    def confusion(self) -> NDArray[np.int64]:
        """(C, C) int64, or (C, C+1) of label pictures: [i, j] samples of class i that were predicted as class j."""
        if self.counts is not None:
            return self.counts
        if self.y_true is None or self.y_pred is None:
            raise ValueError("neither labels nor a confusion matrix are stored")
        from core.metrics.classification import confusion_matrix

        return confusion_matrix(self.y_true, self.y_pred, len(self.classes))


@dataclass(frozen=True)
class MatrixInputs:
    """What metrics over a score matrix are computed from. nan in any of them is "not evaluated".

    R: (T, T), R[k, j] the score on test set j after round k + 1 (the untrained row is not in it).
    untrained: (T,) scores of the untrained model. joint: (T,) score on test set k of a fresh model trained on rounds
    1..k+1 together. solo: (T,) score on test set j of a fresh model trained on round j alone.
    """

    R: NDArray[np.float64]
    untrained: NDArray[np.float64] | None = None
    joint: NDArray[np.float64] | None = None
    solo: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Metric:
    """A metric that the leaderboard can show.

    level: "score" is a function of Evidence (a number, or a mapping of parts to numbers); "matrix" is a function of
    MatrixInputs (a number; nan when undefined); "system" is measured by the runner and has no function.
    """

    name: str
    level: str
    summary: str  # first line of the docstring
    higher_is_better: bool = True
    source: str = ""  # citation
    formula: str = ""
    aliases: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # "untrained", "joint", "solo"
    function: Callable[..., float | Mapping[str, float]] | None = field(default=None, compare=False, repr=False)
    partial: bool = False  # a "score" that some test sets don't have by nature: the column is the mean over the others
    mapping: bool = False  # a "score" that yields several numbers (per class): shown in reports, never ranked by
