"""An exam: rounds of training data, test sets, and the rules of what a learner may see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.data.dataset import Dataset

__all__ = ["Exam", "Round", "Rules", "TestSet", "Transform"]

Transform = Callable[[NDArray[Any]], NDArray[Any]]  # a batch of x to a batch of x, e.g. a fixed permutation of pixels


@dataclass(frozen=True)
class Rules:
    """What a learner may see (METHODS of the survey arXiv 2302.00487, table of scenarios).

    output_space: "all" classes, those "seen" so far, or those of the "task" whose identity is given.
    passes: how often a learner may go over a round's data; None is as often as it likes.
    boundaries: whether a learner is told that a round begins or ends.
    """

    scenario: str
    task_in_training: bool
    task_in_testing: bool
    output_space: str
    passes: int | None = None
    boundaries: bool = True


@dataclass(frozen=True)
class Round:
    """What one round brings. `train` are positions in `dataset.train`, `classes` are class indices taught in it.

    The order of `classes` is that of the domain's own class list, where it has one.
    """

    name: str
    train: NDArray[np.int64]
    classes: tuple[int, ...]
    transform: Transform | None = None


@dataclass(frozen=True)
class TestSet:
    """One column of the score matrix. `test` are positions in `dataset.test`."""

    __test__ = False  # the name is not an invitation to pytest

    name: str
    test: NDArray[np.int64]
    classes: tuple[int, ...]
    transform: Transform | None = None


@dataclass(frozen=True)
class Exam:
    """`tests[j]` examines what round j+1 teaches when there is one per round; a shared test set is a single one."""

    dataset: Dataset
    rounds: tuple[Round, ...]
    tests: tuple[TestSet, ...]
    rules: Rules

    def taught_before(self, test: int) -> tuple[int, ...] | None:
        """Class indices taught in rounds before the one that `tests[test]` belongs to; None if it belongs to none."""
        if len(self.tests) != len(self.rounds):
            return None
        return tuple(sorted({index for round_ in self.rounds[:test] for index in round_.classes}))
