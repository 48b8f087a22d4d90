"""An exam: rounds of training data, test sets, and the rules on what a learner may see."""

from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ianvs.base.former_names import former_names
from ianvs.exam.data.dataset import Dataset, Positions, Transform


@former_names(asked="test_sets")
@dataclass(frozen=True)
class Rules:
    """What a learner may see (survey arXiv 2302.00487, table of scenarios).

    Attributes:
        scenario: The name of the scenario.
        task_in_training: Whether a learner is given the identity of the task in training.
        task_in_testing: Whether it is given the identity of the task in testing.
        output_space: Predictions are among "all" classes, those "seen" so far, or those of the "task".
        passes: How often a learner may iterate over the data of a round; None: no limit.
        boundaries: Whether a learner knows where a round begins and ends. Otherwise it gets the chunks of a `Stream`.
        training_labels: False if rounds have no labels (continual pre-training).
        test_sets: Test sets after each round: "all", or those of "future" rounds alone (the streaming protocol of
            CLEAR).
        unseen: Test samples for which -1, "unseen", is the right prediction: those of "classes" that were not taught
            yet, those of test sets of later "rounds", or "none".
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
        """Return the fields by their names in stored files, where `test_sets` is "asked"."""
        return {"asked" if name == "test_sets" else name: value for name, value in vars(self).items()}


@dataclass(frozen=True)
class Round:
    """The training data of one round.

    Attributes:
        name: The name.
        train: Positions in `dataset.train`.
        classes: Indices of the classes taught, in the order of the domain's own class list, where it has one.
        transform: Changes x.
        labels: (len(train),) int64, labels in place of the dataset's: wrong ones where labels are noisy, -1 where a
            label is hidden; None: the dataset's own.
        limited: Whether a label, which may have several classes, is restricted to `shown_classes`.
        shown_classes: See `limited`; None: `classes`.
        background: In masks, the class of pixels of other classes; None: labels are no masks.
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
    """One column of the score matrix.

    Attributes:
        name: The name.
        test: Positions in `dataset.test`. Test sets may share samples.
        classes: Indices of its classes.
        transform: Changes x.
        adapt: Positions of labelled samples in `dataset.train`, on which a copy of the learner is adapted before it
            predicts this test set (continual pre-training); None: it is not adapted.
    """

    __test__ = False  # not a class of tests for pytest

    name: str
    test: Positions
    classes: tuple[int, ...]
    transform: Transform | None = None
    adapt: Positions | None = None


@dataclass(frozen=True)
class EvaluationBatch:
    """Samples that are predicted together, each once, and the test sets that they belong to.

    Attributes:
        union: All of them as one test set.
        tests: Positions of the test sets in `Exam.tests`.
        rows: For each test set the positions of its samples in `union`; None: all of it.
    """

    union: TestSet
    tests: tuple[int, ...]
    rows: tuple[Positions | None, ...] = (None,)


@dataclass(frozen=True)
class Stream:
    """Rounds that run into each other: the learner gets chunks and does not know where a round ends.

    Attributes:
        batch: Samples of a chunk.
        eval_every: Samples between two further evaluations within rounds; None: only at the end of rounds.
        shuffled: Whether the case's seed shuffles each round; else the order is that of `Round.train`.
    """

    batch: int
    eval_every: int | None = None
    shuffled: bool = True


@former_names(sheets="evaluation_batches")
@dataclass(frozen=True)
class Exam:
    """Rounds and test sets.

    `tests[j]` tests what round j + 1 teaches if there is one test set per round. A shared test set is a single one.
    With `rules.test_sets` "future" there may be one more test set than rounds, of what comes after the last round.

    Attributes:
        dataset: The data.
        rounds: The rounds.
        tests: The test sets.
        rules: What a learner may see.
        stream: How rounds are cut into chunks; None: they come whole.
    """

    dataset: Dataset
    rounds: tuple[Round, ...]
    tests: tuple[TestSet, ...]
    rules: Rules
    stream: Stream | None = None  # without it, a round is handed over whole

    @cached_property
    def evaluation_batches(self) -> tuple[EvaluationBatch, ...]:
        """Groups of test sets that are predicted together: those that share samples, if the task is hidden."""
        groups: dict[object, list[int]] = {}
        for j, test in enumerate(self.tests):
            alone = self.rules.task_in_testing or test.adapt is not None
            groups.setdefault(("alone", j) if alone else id(test.transform), []).append(j)
        batches = []
        for group in groups.values():
            union, counts = np.unique(np.concatenate([self.tests[j].test for j in group]), return_counts=True)
            if len(group) == 1 or (counts == 1).all():
                batches += [EvaluationBatch(self.tests[j], (j,)) for j in group]
                continue
            tests = [self.tests[j] for j in group]
            classes = tuple(sorted({index for test in tests for index in test.classes}))
            together = replace(tests[0], name="the test sets", test=union, classes=classes)
            where = [np.searchsorted(union, test.test) for test in tests]
            rows = tuple(None if np.array_equal(positions, np.arange(len(union))) else positions for positions in where)
            batches.append(EvaluationBatch(together, tuple(group), rows))
        return tuple(sorted(batches, key=attrgetter("tests")))

    def taught_before(self, test: int) -> tuple[int, ...] | None:
        """Return the class indices taught before the round of `tests[test]`; None if it belongs to no round."""
        if len(self.tests) != len(self.rounds):
            return None
        return tuple(sorted({index for round_ in self.rounds[:test] for index in round_.classes}))
