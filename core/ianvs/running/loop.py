"""The loop of continual learning: what a case does from its first round to its last, in the order in which it happens.

A round is trained, saved, judged by the gate where the exam has one, examined, and stored as a whole. A case that was
cut off goes on after the last round that is stored. Who takes part is named by the protocols below. In a run these are
the author's objects (session/learner.py), the exam (session/examination.py), the training data
(session/training_source.py) and the folder of the case (session/stored_rounds.py); in a test, objects in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ianvs.base.errors import ExamRuleError, PluginError, ReplyServerError
from ianvs.base.types import Asked, Predictions, RoundResult
from ianvs.processes.interpreters.wire import error_kind, error_text
from ianvs.store import RoundFolder, StoredModule

Answers = Mapping[Asked, Predictions]


class Interrupted(Exception):  # noqa: N818 - not an error: a wish that was granted
    """The case was asked to end; what is complete is stored."""


@dataclass(frozen=True)
class Model:
    """What of a learner is stored. folder: None for one that has nothing stored."""

    modules: Sequence[StoredModule] = ()
    folder: Path | None = None


class Learner(Protocol):
    """A paradigm with its modules."""

    def train(self, step: int, valid: Any) -> None: ...
    def save(self, folder: Path) -> Model: ...
    def restore(self, model: Model, *, taught: bool = True) -> None: ...
    def measure(self) -> None:
        """Let its modules measure themselves, as they are now."""

    def forget(self) -> None:
        """All modules are new from now on."""

    def instantiate(self, modules: Sequence[StoredModule]) -> int:
        """Make those modules, untaught; how many there are now."""


class Examination(Protocol):
    """What the learner is asked."""

    def begin(self) -> None:
        """Nothing was asked in this round."""

    def predictions(self, model: Model, taught: int) -> Answers:
        """Answers to all test sets after round `taught`. model: what the learner is now, as it was saved."""


class Source(Protocol):
    """Where a learner gets its training data."""

    saw_past_rounds: bool

    @property
    def answered(self) -> Answers:
        """Within the round, before its end."""

    def begin(self, step: int) -> None: ...
    def valid(self, step: int) -> Any:
        """The held-out part of the round, if it has one."""

    def stream(self, *, last: bool) -> Mapping[str, Any]:
        """What was answered in this round before it was told. last: no round follows."""

    def end(self) -> None:
        """The round is stored."""


class Gate(Protocol):
    """Whether a new model may stay."""

    def score(self, model: Model, step: int) -> float | None: ...
    def decide(self, step: int, before: float | None, after: float | None) -> tuple[bool, tuple[float, float]]: ...


class Rounds(Protocol):
    """What is stored of the case."""

    def complete(self) -> Sequence[RoundResult]:
        """Rounds 0, 1, ... whose checksums hold, up to the first that is missing or damaged."""

    def why_damaged(self) -> str:
        """What is wrong with the round after those; "" where none is there."""

    def why_not_resumed(self) -> str:
        """What is known of this algorithm that keeps its cases from going on; "" for nothing."""

    def new(self, step: int) -> AbstractContextManager[RoundFolder]:
        """A folder that becomes round `step` as a whole when the block ends without an error."""

    def fill(
        self, folder: RoundFolder, result: RoundResult, answers: Answers, model: Model, stream: Mapping[str, Any]
    ) -> None: ...
    def empty(self, folder: RoundFolder) -> None:
        """Nothing of a model is in it."""

    def model(self, step: int) -> Model:
        """As it was saved; without modules where it is gone."""

    def modules(self, step: int) -> Sequence[StoredModule]:
        """Those that were saved, whether or not their files are still kept."""

    def bring_back_notes(self, model: Model) -> None:
        """In the learner's own folder is what was there when `model` was stored."""

    def start_over(self, why: str) -> None:
        """Drop all rounds. why: told to the user; "" where nothing was complete."""


class Account(Protocol):
    """What is stored of a round beside its answers and its model."""

    def untrained(self) -> RoundResult: ...
    def of_round(
        self, step: int, model: Model, answers: Answers, *, adopted: bool, scores: tuple[float, float] | None
    ) -> RoundResult: ...


class Reporter(Protocol):
    """Who is told how far the case is."""

    def round(self, step: int, doing: str) -> None: ...
    def stop_requested(self) -> bool: ...


@dataclass
class Case:
    """Who takes part in a case. steps: how many rounds it has. until: the round after which it pauses, if it does.

    resumed_after: the last round that was stored before; None: it began anew.
    """

    steps: int
    learner: Learner
    examination: Examination
    source: Source
    rounds: Rounds
    account: Account
    reporter: Reporter
    gate: Gate | None = None
    until: int | None = None
    resumed_after: int | None = None

    @property
    def last(self) -> int:
        return self.steps if self.until is None else min(self.until, self.steps)


def run_rounds(case: Case) -> None:
    """Every round that is not stored yet. Raises Interrupted between two rounds, and what the author's code raises."""
    model, done = _resumed(case)
    has_predicted = True
    if done is None:
        model, has_predicted = _examine_untrained(case)
        done = 0
    for step in range(done + 1, case.last + 1):
        if case.reporter.stop_requested():
            raise Interrupted
        _begin(case, step)
        case.reporter.round(step, "train")
        comparable = case.gate is not None and (step > 1 or has_predicted)  # else there is no model to keep instead
        before = case.gate.score(model, step) if case.gate is not None and comparable else None
        case.learner.train(step, case.source.valid(step))
        with case.rounds.new(step) as folder:
            model = case.learner.save(folder.model)
            adopted, scores = True, None
            if case.gate is not None and comparable:
                adopted, scores = case.gate.decide(step, before, case.gate.score(model, step))
                if not adopted:
                    model = _take_back(case, step, folder)
            case.reporter.round(step, "evaluate")
            answers = case.examination.predictions(model, step)
            case.learner.measure()
            result = case.account.of_round(step, model, answers, adopted=adopted, scores=scores)
            stream = case.source.stream(last=step == case.steps)
            case.rounds.fill(folder, result, {**case.source.answered, **answers}, model, stream)
        case.source.end()
        model = case.rounds.model(step)


def _begin(case: Case, step: int) -> None:
    case.source.begin(step)
    case.examination.begin()


def _examine_untrained(case: Case) -> tuple[Model, bool]:
    """Row 0: the model, and whether it could answer. A plugin that can't predict untrained has an empty row."""
    _begin(case, 0)
    answers: Answers = {}
    has_predicted = False
    try:
        answers = case.examination.predictions(Model(), 0)
        has_predicted = True
    except (ExamRuleError, ReplyServerError):
        raise
    except Exception as error:
        if not case.learner.instantiate(()):
            raise  # none could be built
        print(f"can't predict before training ({error_kind(error)}: {error_text(error)});")
        print("what needs the untrained model (FWT, Ianvs's BWT and FWT) stays empty.")
        case.examination.begin()
    else:
        case.learner.measure()
    with case.rounds.new(0) as folder:
        model = Model()
        try:
            model = case.learner.save(folder.model)
        except Exception:  # it has nothing to save before it was trained
            case.rounds.empty(folder)
        case.rounds.fill(folder, case.account.untrained(), answers, model, {})
    return case.rounds.model(0), has_predicted


def _take_back(case: Case, step: int, folder: RoundFolder) -> Model:
    """The gate has rejected round `step`: the model of the round before is back in place."""
    previous = case.rounds.model(step - 1)
    if not previous.modules:
        raise PluginError(
            f"model_eval: the model of round {step - 1} is gone, so round {step} can't be undone.", code="missing-file"
        )
    case.learner.restore(previous, taught=False)
    case.rounds.empty(folder)
    return case.learner.save(folder.model)


def _resumed(case: Case) -> tuple[Model, int | None]:
    """The model and index of the last complete round, whose checksum is trusted; None where the case begins anew."""
    rounds, learner = case.rounds, case.learner
    complete = rounds.complete()
    if damage := rounds.why_damaged():
        print(f"{damage}: it is not believed.")
    if len(complete) <= 1:
        rounds.start_over(damage)
        return Model(), None
    last = complete[-1].index
    case.source.saw_past_rounds = complete[-1].bound
    if last == case.steps:
        learner.instantiate(rounds.modules(last))  # they are asked once more who they are
        return Model(), last
    if said := rounds.why_not_resumed():
        rounds.start_over(f"can't resume after round {last}: {said}")
        return Model(), None
    try:
        model = rounds.model(last)
        if not model.modules:
            raise PluginError("no model is stored", code="missing-file")
        rounds.bring_back_notes(model)
        learner.restore(model)
    except Exception as error:
        rounds.start_over(f"can't resume after round {last} ({error_kind(error)}: {error_text(error)})")
        learner.forget()
        return Model(), None
    case.resumed_after = last
    print(f"resuming after round {last} of {case.steps}")
    return model, last
