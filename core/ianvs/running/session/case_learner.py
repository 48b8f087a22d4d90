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
    """Facts that are known before the first round. steps: names. measures: of the paradigm and of its modules.

    measured: whether modules measure themselves. hears, stateless: of the paradigm. device, card: where it runs.
    """

    steps: tuple[str, ...]
    reference: bool
    measures: Mapping[str, Measure]
    measured: bool
    hears: bool
    stateless: bool
    device: Literal["cpu", "cuda"]
    card: str


@dataclass(frozen=True)
class LearnerState:
    """State that a learner reports. passes, measures: of the current step. The rest is as of now.

    memory: whether it declares a store of old samples. past: it is given all rounds so far. modules: how many it has.
    unscored: what it is not asked, which it may lack, and why; "" where there is nothing. Sizes: after the last step.
    """

    passes: int
    measures: Mapping[str, float]
    basemodel: str
    remark: str
    memory_samples: int | None
    memory_bytes: int | None
    peak_gpu_bytes: int | None
    past: bool
    modules: int
    caller: str
    unscored: str
    parameters: int | None = None
    trainable_parameters: int | None = None
    flops: int | None = None


NO_STATE = LearnerState(0, {}, "", "", None, None, None, past=False, modules=0, caller="", unscored="")
"""State of a learner that is not built yet."""


@dataclass(frozen=True)
class Query:
    """Samples that are predicted in one call.

    replies: what is expected, where a question shows it. name: what errors call the samples. context: what is told with
    them. round: (number, seen, new) of a held-out part. question: None: labels are asked for. adapt: what a copy is
    taught before it answers, with its name and classes. taught: whether the learner was taught anything. tried: nothing
    hangs on the answers. replies_by: where replies may come from.
    """

    x: Column
    name: str
    label_shape: tuple[int, ...]
    context: Mapping[str, Any] = field(default_factory=dict)
    replies: Column | None = None
    round: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None
    question: str | None = None
    adaptation: tuple[ServedSamples, str, tuple[int, ...]] | None = None
    taught: bool = True
    tried: bool = False
    replies_by: Replies | None = None


class CaseLearner(Learner, Protocol):
    """The learner of a case: `LocalLearner` in its process, `SandboxedLearner` in sandboxes."""

    memory: MemoryMeter
    ready: LearnerFacts
    state: LearnerState
    spent: Spent
    built: Spent
    saved: Spent
    changed: str

    @property
    def is_apart(self) -> bool: ...
    @property
    def adapts(self) -> bool: ...
    def prepare(self, folder: Path) -> LearnerFacts: ...
    def learn_from(self, source: Source) -> None: ...
    def save(self, folder: Path, *, of_round: bool = True) -> Model: ...
    def restore(self, model: Model, *, taught: bool = True, fresh: bool = False) -> None: ...
    def apart(self) -> AbstractContextManager[None]: ...
    def examined(self, model: Model, *, apart: bool = False) -> AbstractContextManager[None]: ...
    def answers(self, query: Query, model: Model) -> Iterator[Predictions]: ...
