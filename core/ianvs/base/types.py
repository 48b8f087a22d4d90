"""Dataclasses of results. They are frozen and have no logic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import InvalidValue, shortened
from ianvs.base.former_names import former_module_names, former_names

if not TYPE_CHECKING:
    __getattr__ = former_module_names(__name__, Asked="PredictionKey")

Status = Literal["finished", "failed", "unfinished"]
FailureKind = Literal["exception", "killed", "timeout", "memory", "interrupted", "lost"]
REPEAT_ROLE = "repeat"
"""The role of a case that repeats another one with the same seed."""
POOLED_TEST_SET = "all test sets"
"""Name of the single column of a score that is computed over the samples of all test sets together."""


@dataclass(frozen=True)
class TestCase:
    """One algorithm with one choice of hyperparameters and one seed."""

    __test__ = False  # the name is not an invitation to pytest

    id: str  # hash of everything that affects the result
    row: str  # the same without the seed: cases of one row are repetitions
    algorithm: str
    paradigm: str
    modules: tuple[tuple[str, str], ...]  # (module type, class name)
    hyperparameters: Mapping[str, Any]
    seed: int
    testenv: str = ""  # name of its testenv, if the job has several
    role: str = ""  # "joint" or "single_task" for a reference run, which is not ranked

    def with_module_type(self, name: str) -> str:
        """Return a hyperparameter's name with the type of its module; names of later modules have it already."""
        first, *others = (kind for kind, _ in self.modules)
        return name if name.startswith(tuple(f"{kind}-" for kind in others)) else f"{first}-{name}"


class PredictionKey(NamedTuple):
    """Names the predictions of one test set or evaluation batch.

    Attributes:
        test: Position of the test set.
        samples: Training samples so far, within a stream; None: at the end of a round.
    """

    test: int
    samples: int | None = None


@dataclass(frozen=True)
class Predictions:
    """The predictions for a test set.

    Attributes:
        labels: One for each sample, such as (N,) class indices. Stored ones have the format of their data type: for
            masks, the (C, C+1) counts of ianvs.exam.metrics.picture_confusion.
        extras: (N, ...) each, further values for each sample, by name.
    """

    labels: Any
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Measure:
    """A number that a paradigm or a learner reports besides scores.

    Attributes:
        summary: One line.
        reduce: How the number of a case is computed from those of its rounds.
        higher_is_better: The direction.
    """

    summary: str
    reduce: Literal["sum", "max", "last"] = "sum"
    higher_is_better: bool = False


@dataclass(frozen=True)
class Failure:
    """Why a case has no result."""

    kind: FailureKind
    error: str  # class of the exception, or name of the signal
    message: str
    log: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", shortened(self.message))  # tables and terminals show it; the log has all


@dataclass(frozen=True)
class Curve:
    """Scores over time: after every round, and within rounds, if the exam evaluates every n samples.

    The untrained model is not included.

    Attributes:
        samples: (E,) int64, training samples that had arrived before each evaluation, ascending.
        begun: (E,) int64, rounds whose samples had begun to arrive by then, the present one included.
        ended: (E,) int64, rounds that were complete by then.
        scores: (E, J), on each test set; nan: not evaluated.
    """

    samples: NDArray[np.int64]
    begun: NDArray[np.int64]
    ended: NDArray[np.int64]
    scores: NDArray[np.float64]


@former_names(of="from_rounds")
@dataclass(frozen=True)
class ScoreMatrix:
    """The scores of one case, with the scores of its reference runs. nan is "not evaluated".

    Attributes:
        values: (T + 1, J), values[k, j] the score on test set j after round k; row 0 is the untrained model.
        metric: Name of the score.
        rounds: Names of the T rounds.
        tests: Names of the J test sets.
        curve: None if only the matrix is known. A formula over a curve then reads its rows, each as one step.
        joint: (T,) score on test set k of a new model trained on rounds 1..k+1 together; None: no such reference run.
        single_task: (T,) score on test set j of a new model trained on round j alone; None: no such reference run.
        higher_is_better: False for an error or a loss.
        errors: (T + 1, J) standard errors of `values` over the test samples; None: unknown.
    """

    values: NDArray[np.float64]
    metric: str = ""
    rounds: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    curve: Curve | None = None
    joint: NDArray[np.float64] | None = None
    single_task: NDArray[np.float64] | None = None
    higher_is_better: bool = True
    errors: NDArray[np.float64] | None = None

    @classmethod
    def from_rounds(
        cls,
        R: NDArray[np.float64],
        untrained: NDArray[np.float64] | None = None,
        **more: Any,
    ) -> ScoreMatrix:
        """Return a matrix from R as formulas have it.

        Args:
            R: (T, J) scores after each round.
            untrained: (J,) scores of the untrained model; None: unknown.
            **more: Further fields.

        Raises:
            ValueError: The shapes don't fit.
        """
        if R.ndim != 2:
            raise InvalidValue(f"a score matrix has rounds and test sets as its two axes; this one has {R.ndim}")
        first = np.full(R.shape[1], np.nan) if untrained is None else untrained
        if first.shape != (R.shape[1],):
            raise InvalidValue(
                f"`untrained` has shape {first.shape}; one score for each of {R.shape[1]} test sets fits R"
            )
        return cls(np.vstack([first, R]), **more)

    @property
    def R(self) -> NDArray[np.float64]:  # noqa: N802 - the field's notation
        """(T, J): R[k, j] the score on test set j after round k + 1; the untrained row is not in it."""
        return self.values[1:]

    @property
    def untrained(self) -> NDArray[np.float64] | None:
        """(J,) scores of the untrained model; None if none is known."""
        return None if np.isnan(self.values[0]).all() else self.values[0]


@former_names(told="revealed_samples")
@dataclass(frozen=True)
class RoundResult:
    """The costs of one round. Times are wall-clock seconds unless stated otherwise, memory is in bytes.

    None means "not measured".
    """

    index: int  # 0 is the untrained model, which is only evaluated
    name: str
    train_samples: int = 0
    test_samples: int = 0
    train_seconds: float = 0.0
    eval_seconds: float = 0.0
    train_cpu_seconds: float | None = None  # user and system, with threads and child processes
    eval_cpu_seconds: float | None = None
    build_seconds: float | None = None  # creating the plugin's objects, before the first round
    save_seconds: float | None = None
    measure_seconds: float | None = None  # overhead of ianvs since the previous round
    build_cpu_seconds: float | None = None
    save_cpu_seconds: float | None = None
    measure_cpu_seconds: float | None = None
    peak_memory_bytes: int | None = None  # peak host memory so far, minus the level before the plugin was created
    peak_gpu_bytes: int | None = None
    model_bytes: int | None = None  # size of the files that save() wrote
    memory_samples: int | None = None  # size of the plugin's replay memory
    memory_bytes: int | None = None
    parameters: int | None = None  # of the networks that predict() uses, after the last round
    trainable_parameters: int | None = None
    flops: int | None = None  # for predicting one sample
    adopted: bool = True  # False: model_eval kept the model of the previous round
    gate_scores: tuple[float, float] | None = None  # (current model, new model) on the held-out part
    remark: str = ""  # message of the plugin about the training so far
    passes: int | None = None  # over the round's data, as counted by the objects that the plugin got
    examined: tuple[tuple[int, int, int], ...] = ()  # (samples so far, rounds begun, rounds ended); the last at its end
    measures: Mapping[str, float] = field(default_factory=dict)  # measured by its paradigm, by name
    bound: bool = False  # an upper bound: it or its paradigm used past rounds
    unscored: str = ""  # evaluations of the exam that were skipped, and why
    cut_answers: int = 0  # replies that were truncated for storage
    changed: str = ""  # name of an attribute of the learner that an evaluation changed
    unsaved: str = ""  # after the last round: how the predictions differ after save() and load(), in words
    # Values that the learner reported during training: (share of the round, value).
    curves: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    # Of a prequential stream: samples whose labels were revealed by the end; None: labels come with the samples.
    revealed_samples: int | None = None
    answer_seconds: float = 0.0  # predicting a stream, before its labels are revealed; included in eval_seconds
    feedback_seconds: float = 0.0  # learning from a stream, after its labels were revealed
    stream_cpu_seconds: float = 0.0  # CPU time of both


Doubt = Literal["", "changed", "unsaved", "untrained"]
"""Why predictions may not be those of the trained and saved model: an evaluation changed the learner, the model
predicts differently after save() and load(), or nothing was trained."""


@dataclass(frozen=True)
class CaseResult:
    """The result of one case."""

    case: TestCase
    status: Status
    dataset: str
    round_names: tuple[str, ...]
    directory: Path
    failure: Failure | None = None
    notes: tuple[str, ...] = ()  # messages about the data
    remark: str = ""  # message of the plugin about the training
    bound: bool = False  # an upper bound that used past rounds; it is not ranked
    basemodel: str = ""  # the plugin's name of its network, "" if it has none
    rounds: tuple[RoundResult, ...] = ()
    matrices: Mapping[str, ScoreMatrix] = field(default_factory=dict)  # by score name
    over_budget: tuple[str, ...] = ()  # messages about exceeded budgets of the exam
    warnings: tuple[str, ...] = ()  # messages about its evaluation
    details: Mapping[str, Any] = field(default_factory=dict)  # by score name: [k][j] -> {part: value}, e.g. per class
    metrics: Mapping[str, float | None] = field(default_factory=dict)  # by column name, one number each
    texts: Mapping[str, str] = field(default_factory=dict)  # by column name, values of metrics that are not numbers
    measures: Mapping[str, Measure] = field(default_factory=dict)  # measures of its paradigm, by name
    # By score name, (G,): the score of each of G groups of test samples after the last round.
    samples: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    doubt: Doubt = ""
    damaged: tuple[str, ...] = ()  # stored files that are missing or were changed, so they are not used
    # Of a prequential stream, (N,) by name: "scores", and "gains" over the stateless reference.
    stream: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()  # metrics whose reference run is not finished
    finished_at: str | None = None  # ISO 8601, UTC
    provenance: Mapping[str, Any] = field(default_factory=dict)
