"""An exam: rounds of training data, test sets, and the rules of what a learner may see."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ianvs.base.former_names import former_names
from ianvs.exam.data.dataset import Dataset, Positions, Transform


@former_names(asked="test_sets")
@dataclass(frozen=True)
class Rules:
    """What a learner may see (METHODS of the survey arXiv 2302.00487, table of scenarios).

    output_space: "all" classes, those "seen" so far, or those of the "task" whose identity is given.
    passes: how often a learner may go over the data that it is handed; None is as often as it likes.
    boundaries: whether a learner is told that a round begins or ends. Without, it is handed a `Stream`.
    training_labels: False where rounds come without labels (continual pre-training).
    test_sets: "all" of them after every round, or those of the "future" alone (the streaming protocol of CLEAR, where
    a test set holds what its round will teach).
    unseen: what of the test sets is unknown to a learner, which may then answer -1, "unseen": samples of "classes" that
    were not taught yet, those of test sets whose round has still to come ("rounds"), or "none": no such answer.
    """

    scenario: str
    task_in_training: bool
    task_in_testing: bool
    output_space: str
    passes: int | None = None
    boundaries: bool = True
    training_labels: bool = True
    test_sets: str = "all"
    unseen: str = "none"

    def to_json(self) -> dict[str, object]:
        """The fields by their names in stored files, where `test_sets` is "asked"."""
        return {"asked" if name == "test_sets" else name: value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Round:
    """What one round brings. `train` are positions in `dataset.train`, `classes` are class indices taught in it.

    The order of `classes` is that of the domain's own class list, where it has one.
    labels: (len(train),) int64, what a learner is told instead of the dataset's labels: wrong ones where labels are
    noisy, -1 where a label is withheld; None: the dataset's own. limited: of a label, which may be of several classes,
    only what is of `classes` is told, or of `shown_classes` where these are others. background: the class that pixels
    of other classes get in masks; None: these are no masks.
    """

    name: str
    train: Positions
    classes: tuple[int, ...]
    transform: Transform | None = None
    labels: NDArray[np.int64] | None = None
    limited: bool = False
    shown_classes: tuple[int, ...] | None = None
    background: int | None = None


@dataclass(frozen=True)
class TestSet:
    """One column of the score matrix. `test` are positions in `dataset.test`, of which others may have some, too.

    adapt: positions in `dataset.train` of labelled samples that a copy of the learner is adapted on before it answers
    this test set (continual pre-training); None: the learner answers as it is.
    """

    __test__ = False  # the name is not an invitation to pytest

    name: str
    test: Positions
    classes: tuple[int, ...]
    transform: Transform | None = None
    adapt: Positions | None = None


@dataclass(frozen=True)
class Sheet:
    """Samples that are predicted together, each once, and the test sets that they belong to.

    Attributes:
        union: All of them as one test set.
        tests: Positions of the test sets in `Exam.tests`.
        rows: For each test set the positions of its samples in `union`; None: it is the whole of it.
    """

    union: TestSet
    tests: tuple[int, ...]
    rows: tuple[Positions | None, ...] = (None,)


@dataclass(frozen=True)
class Stream:
    """Rounds that run into each other: the learner is handed chunks that know nothing of where a round ends.

    batch: samples in a chunk. eval_every: samples between two examinations beside those at the end of a round; None:
    no others. shuffled: within a round the order is drawn by the case's seed; else it is that of `Round.train`.
    """

    batch: int
    eval_every: int | None = None
    shuffled: bool = True


@dataclass(frozen=True)
class Exam:
    """`tests[j]` examines what round j+1 teaches when there is one per round; a shared test set is a single one.

    With `rules.test_sets` "future" there may be one test set more than rounds, of what comes after the last round.
    """

    dataset: Dataset
    rounds: tuple[Round, ...]
    tests: tuple[TestSet, ...]
    rules: Rules
    stream: Stream | None = None  # without it, a round is handed over whole

    @cached_property
    def sheets(self) -> tuple[Sheet, ...]:
        """What is asked after a round: test sets that share samples are one, where the task is hidden."""
        groups: dict[object, list[int]] = {}
        for j, test in enumerate(self.tests):
            alone = self.rules.task_in_testing or test.adapt is not None
            groups.setdefault(("alone", j) if alone else id(test.transform), []).append(j)
        sheets = []
        for group in groups.values():
            union, counts = np.unique(np.concatenate([self.tests[j].test for j in group]), return_counts=True)
            if len(group) == 1 or (counts == 1).all():
                sheets += [Sheet(self.tests[j], (j,)) for j in group]
                continue
            tests = [self.tests[j] for j in group]
            classes = tuple(sorted({index for test in tests for index in test.classes}))
            together = replace(tests[0], name="the test sets", test=union, classes=classes)
            where = [np.searchsorted(union, test.test) for test in tests]
            rows = tuple(None if np.array_equal(positions, np.arange(len(union))) else positions for positions in where)
            sheets.append(Sheet(together, tuple(group), rows))
        return tuple(sorted(sheets, key=lambda sheet: sheet.tests))

    def taught_before(self, test: int) -> tuple[int, ...] | None:
        """Class indices taught in rounds before the one that `tests[test]` belongs to; None if it belongs to none."""
        if len(self.tests) != len(self.rounds):
            return None
        return tuple(sorted({index for round_ in self.rounds[:test] for index in round_.classes}))
