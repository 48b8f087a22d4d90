"""The interface of a case to its learner, wherever the plugin's code runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from ianvs.base.types import Measure, Predictions
from ianvs.exam.data.parts import Column
from ianvs.running.loop import Learner, Model
from ianvs.running.session.feed import ServedSamples
from ianvs.running.session.known_replies import Replies
from ianvs.running.session.measure import Spent
from ianvs.running.session.memory_meter import MemoryMeter
from ianvs.running.session.session import Source


@dataclass(frozen=True)
class LearnerFacts:
    """Facts that are known before the first round.

    Attributes:
        steps: Names of the rounds.
        reference: Whether the paradigm is a reference, which no rules restrict.
        measures: Measures that the paradigm and its modules declare.
        measured: Whether a module has a method `measured`.
        receives_feedback: Whether the paradigm receives feedback on predictions instead of training data.
        stateless: Whether the paradigm is reset before each prediction.
        device: Device of the networks.
        device_name: Name of the GPU, or "cpu".
    """

    steps: tuple[str, ...]
    reference: bool
    measures: Mapping[str, Measure]
    measured: bool
    receives_feedback: bool
    stateless: bool
    device: Literal["cpu", "cuda"]
    device_name: str


@dataclass(frozen=True)
class LearnerState:
    """State that a learner reports.

    Attributes:
        passes: Passes over the data of the current round.
        measures: Values of the measures in the current round.
        basemodel: Name of the class of the base model.
        remark: Message of the modules for the round; "" if there is none.
        memory_samples: Samples in memory; None if no module declares a memory.
        memory_bytes: Size of that memory.
        peak_gpu_bytes: Peak of the GPU's memory; None on the CPU.
        sees_past_rounds: Whether a module is given the data of all rounds so far.
        modules: Number of modules.
        caller: Start of error messages on the modules.
        skipped_evaluations: Optional evaluations that are skipped, with the reason; "" if there are none.
        parameters: Number of parameters after the last round; None if unknown, like the next two.
        trainable_parameters: Number of those that are trained.
        flops: Floating-point operations for one sample.
    """

    passes: int
    measures: Mapping[str, float]
    basemodel: str
    remark: str
    memory_samples: int | None
    memory_bytes: int | None
    peak_gpu_bytes: int | None
    sees_past_rounds: bool
    modules: int
    caller: str
    skipped_evaluations: str
    parameters: int | None = None
    trainable_parameters: int | None = None
    flops: int | None = None


NO_STATE = LearnerState(
    0, {}, "", "", None, None, None, sees_past_rounds=False, modules=0, caller="", skipped_evaluations=""
)
"""State of a learner that is not built yet."""


@dataclass(frozen=True)
class Query:
    """Samples that are predicted in one call.

    Attributes:
        x: Samples.
        name: Name of the samples in error messages.
        label_shape: Shape of one label.
        context: Keyword arguments of `predict`.
        replies: Expected replies, if the evaluation task shows them.
        round: (number, seen classes, new classes) of a held-out part.
        evaluation_task: Name of an evaluation task; None if labels are predicted.
        adaptation: (labelled samples, name, classes) on which a copy is trained before it predicts.
        taught: Whether the learner has been trained.
        is_trial: Whether the predictions are discarded.
        replies_by: Source of generated replies.
    """

    x: Column
    name: str
    label_shape: tuple[int, ...]
    context: Mapping[str, Any] = field(default_factory=dict)
    replies: Column | None = None
    round: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None
    evaluation_task: str | None = None
    adaptation: tuple[ServedSamples, str, tuple[int, ...]] | None = None
    taught: bool = True
    is_trial: bool = False
    replies_by: Replies | None = None


class CaseLearner(Learner, Protocol):
    """The learner of a case: `LocalLearner` in its process, `SandboxedLearner` in sandboxes."""

    memory: MemoryMeter
    facts: LearnerFacts
    state: LearnerState
    spent: Spent
    built: Spent
    saved: Spent
    changed: str

    @property
    def uses_copies(self) -> bool: ...
    @property
    def adapts(self) -> bool: ...
    def prepare(self, folder: Path) -> LearnerFacts: ...
    def learn_from(self, source: Source) -> None: ...
    def save(self, folder: Path, *, of_round: bool = True) -> Model: ...
    def restore(self, model: Model, *, taught: bool = True, fresh: bool = False) -> None: ...
    def untimed(self) -> AbstractContextManager[None]: ...
    def evaluating(self, model: Model, *, apart: bool = False) -> AbstractContextManager[None]: ...
    def answers(self, query: Query, model: Model) -> Iterator[Predictions]: ...
