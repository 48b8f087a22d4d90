"""The loop of continual learning: what a test case does, from its first round to its last.

Each round is trained, saved, checked by the gate (`model_eval`) if the exam has one, evaluated and stored atomically.
In a sandbox all rounds are trained and stored in the phase "train", and the stored models are evaluated in the
phase "evaluate". A case that was interrupted resumes after the last stored round. The loop depends only on the
protocols below. In a run they are implemented by the modules of `ianvs.running.session`; in unit tests by objects in
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from ianvs.base.errors import ExamRuleError, PluginError, ReplyServerError
from ianvs.base.types import PredictionKey, Predictions, RoundResult
from ianvs.processes.interpreters.wire import error_kind, error_text
from ianvs.store import RoundFolder, StoredModule

PredictionsByTest = Mapping[PredictionKey, Predictions]
T = TypeVar("T")
Phase = Literal["all", "train", "evaluate"]


class CaseInterruptedError(Exception):
    """The case was asked to stop. Completed rounds are stored."""


@dataclass(frozen=True)
class Model:
    """A saved learner.

    Attributes:
        modules: The saved modules; empty if nothing was saved.
        folder: Where they are saved; None if nothing was saved.
    """

    modules: Sequence[StoredModule] = ()
    folder: Path | None = None


class Learner(Protocol):
    """A paradigm with its modules."""

    def train(self, step: int, valid: Any) -> None:
        """Train round `step`. valid: its validation samples, or None."""

    def save(self, folder: Path) -> Model:
        """Save the current state below `folder`."""

    def restore(self, model: Model, *, taught: bool = True) -> None:
        """Load a saved state. taught: also restore what the modules were trained on."""

    def measure(self) -> None:
        """Let the modules measure themselves."""

    def reset(self) -> None:
        """Replace all modules by new, untrained ones."""

    def instantiate(self, modules: Sequence[StoredModule]) -> int:
        """Create these modules, untrained. Returns the number of modules."""


class Examination(Protocol):
    """Evaluates the learner on the test sets."""

    def predictions(self, model: Model, taught: int) -> PredictionsByTest:
        """Predict every test set. model: the current state as saved. taught: number of trained rounds."""


class TrainingSource(Protocol):
    """Serves the training data."""

    saw_past_rounds: bool

    @property
    def evaluated(self) -> PredictionsByTest:
        """Predictions made between the chunks of this round's stream."""

    def begin(self, step: int) -> None:
        """Round `step` begins, without any cost so far; 0 is the untrained model."""

    def valid(self, step: int) -> Any:
        """Validation samples of the round, or None."""

    def stream(self, *, last: bool) -> Mapping[str, Any]:
        """Return predictions of this round's prequential stream. last: no further round follows."""

    def end(self) -> None:
        """The round is stored."""


class Gate(Protocol):
    """Decides whether a newly trained model replaces the previous one."""

    def score(self, model: Model, step: int) -> float | None:
        """Score the current model on the validation samples of round `step`."""

    def decide(self, step: int, before: float | None, after: float | None) -> tuple[bool, tuple[float, float]]:
        """Returns whether the new model is adopted, and both scores."""


class Rounds(Protocol):
    """The stored rounds of the case."""

    def complete(self) -> tuple[Sequence[RoundResult], str]:
        """Return rounds 0, 1, ... with valid checksums, up to the first that is missing or damaged.

        In the phase "train" those that are trained, evaluated or not. The text describes the damaged round after them;
        "" if there is none.
        """

    def trained(self) -> Sequence[RoundResult]:
        """Rounds that are trained, evaluated or not, in every phase."""

    def resume_blocker(self) -> str:
        """Why cases of this algorithm can't resume; "" if they can."""

    def new_round(self, step: int) -> AbstractContextManager[RoundFolder]:
        """Return a folder that becomes round `step` atomically if the block exits without an error."""

    def write(
        self,
        folder: RoundFolder,
        result: RoundResult,
        predictions: PredictionsByTest,
        model: Model,
        stream: Mapping[str, Any],
    ) -> None:
        """Write everything but the model, which is in the folder already."""

    def add_predictions(self, result: RoundResult, predictions: PredictionsByTest) -> None:
        """Complete a round that was stored in the phase "train"."""

    def clear_model(self, folder: RoundFolder) -> None:
        """Delete the model from the folder."""

    def model(self, step: int) -> Model:
        """Return the model saved in round `step`; without modules if it is not kept any more."""

    def modules(self, step: int) -> Sequence[StoredModule]:
        """Return the modules saved in round `step`, even if their files are not kept any more."""

    def restore_plugin_folder(self, model: Model) -> None:
        """Restore the plugin's own files as they were when `model` was saved."""

    def restart(self, reason: str) -> None:
        """Delete all rounds. reason: shown to the user; "" if nothing was stored."""


class Summarizer(Protocol):
    """Collects costs and messages of a round."""

    def untrained(self) -> RoundResult: ...
    def trained(
        self,
        step: int,
        model: Model,
        predictions: PredictionsByTest,
        *,
        adopted: bool,
        gate_scores: tuple[float, float] | None,
    ) -> RoundResult: ...
    def evaluated(self, trained: RoundResult, predictions: PredictionsByTest) -> RoundResult:
        """Return the result of a round that was stored in the phase "train", with the costs of its evaluation."""


class Reporter(Protocol):
    """Reports progress and receives the request to stop."""

    def round(self, step: int, doing: str) -> None: ...
    def stop_requested(self) -> bool: ...


@dataclass
class Case:
    """Everything that takes part in one test case.

    Attributes:
        steps: Number of rounds.
        last: The round after which the case pauses, or ends.
        resumed_after: Set by `run_rounds`: the last round stored by an earlier process; None if there was none.
    """

    steps: int
    learner: Learner
    examination: Examination
    source: TrainingSource
    rounds: Rounds
    summarizer: Summarizer
    reporter: Reporter
    last: int
    gate: Gate | None = None
    phase: Phase = "all"
    resumed_after: int | None = None


def run_rounds(case: Case, *, is_new: bool = False) -> None:
    """Run every round that is not stored yet.

    Args:
        case: The case.
        is_new: Whether nothing of it is stored.

    Raises:
        CaseInterruptedError: Between two rounds, if the case was asked to stop.
        Exception: Whatever the plugin raises.
    """
    if case.phase == "evaluate":
        _evaluate_stored(case)
        return
    done = None if is_new else _resume(case)
    predicts_untrained = True
    if done is None:
        predicts_untrained = _store_untrained(case)
        done = 0
    for step in range(done + 1, case.last + 1):
        if case.reporter.stop_requested():
            raise CaseInterruptedError
        case.source.begin(step)
        case.reporter.round(step, "train")
        gate = case.gate if step > 1 or predicts_untrained else None  # without predictions there is nothing to compare
        score_before = None if gate is None else gate.score(case.rounds.model(step - 1), step)
        case.learner.train(step, case.source.valid(step))
        with case.rounds.new_round(step) as folder:
            model = case.learner.save(folder.model)
            adopted, gate_scores = True, None
            if gate is not None:
                adopted, gate_scores = gate.decide(step, score_before, gate.score(model, step))
                if not adopted:
                    model = _restore_previous(case, step, folder)
            predictions: PredictionsByTest = {}
            if case.phase == "all":
                case.reporter.round(step, "evaluate")
                predictions = case.examination.predictions(model, step)
            case.learner.measure()
            result = case.summarizer.trained(step, model, predictions, adopted=adopted, gate_scores=gate_scores)
            stream = case.source.stream(last=step == case.steps)
            case.rounds.write(folder, result, {**case.source.evaluated, **predictions}, model, stream)
        case.source.end()


def _store_untrained(case: Case) -> bool:
    """Evaluate and store round 0. Returns whether the untrained model could predict."""
    case.source.begin(0)
    predictions: PredictionsByTest | None = {}
    predicts = True
    if case.phase == "all":
        predictions = _try_untrained(case, partial(case.examination.predictions, Model(), 0))
        predicts = predictions is not None
    elif case.gate is not None:
        predicts = _try_untrained(case, partial(case.gate.score, Model(), 1)) is not None
    if predicts:
        case.learner.measure()
    with case.rounds.new_round(0) as folder:
        model = Model()
        try:
            if case.phase == "all" or case.gate is not None:  # the gate may return to it
                model = case.learner.save(folder.model)
        except PluginError:
            raise  # it would fail after the first round, too
        except Exception:  # nothing to save before training
            case.rounds.clear_model(folder)
        case.rounds.write(folder, case.summarizer.untrained(), predictions or {}, model, {})
    return predicts


def _try_untrained(case: Case, predict: Callable[[], T]) -> T | None:
    """Return the result of `predict`; None for a plugin that can't predict before training, whose row is empty."""
    try:
        return predict()
    except (ExamRuleError, ReplyServerError):
        raise
    except Exception as error:
        if not case.learner.instantiate(()):
            raise  # the modules can't even be created
        print(f"can't predict before training ({error_kind(error)}: {error_text(error)});")
        print("what needs the untrained model (FWT, Ianvs's BWT and FWT) stays empty.")
        case.source.begin(0)
        return None


def _evaluate_stored(case: Case) -> None:
    """Evaluate the models that were stored in the phase "train"."""
    trained, (evaluated, _) = case.rounds.trained(), case.rounds.complete()
    case.source.saw_past_rounds = trained[-1].bound
    for result in trained[len(evaluated) :]:
        if case.reporter.stop_requested():
            raise CaseInterruptedError
        case.source.begin(result.index)
        case.reporter.round(result.index, "evaluate")
        model = case.rounds.model(result.index) if result.index else Model()
        case.rounds.restore_plugin_folder(model)
        if result.index:
            predictions = case.examination.predictions(model, result.index)
        else:
            predictions = _try_untrained(case, partial(case.examination.predictions, model, 0)) or {}
        case.rounds.add_predictions(case.summarizer.evaluated(result, predictions), predictions)


def _restore_previous(case: Case, step: int, folder: RoundFolder) -> Model:
    """Continue with the model of the round before, since the gate rejected round `step`."""
    previous = case.rounds.model(step - 1)
    if not previous.modules:
        raise PluginError(
            f"model_eval: the model of round {step - 1} is gone, so round {step} can't be undone.", code="missing-file"
        )
    case.learner.restore(previous, taught=False)
    case.rounds.clear_model(folder)
    return case.learner.save(folder.model)


def _resume(case: Case) -> int | None:
    """Restore the last complete round. Its checksum is trusted: predictions are not compared.

    Returns:
        Its number; None if the case starts from scratch.
    """
    rounds, learner = case.rounds, case.learner
    complete, damage = rounds.complete()
    if damage:
        print(f"{damage}: it is not believed.")
    if len(complete) <= 1:
        rounds.restart(damage)
        return None
    last = complete[-1].index
    case.source.saw_past_rounds = complete[-1].bound
    if last == case.steps:
        learner.instantiate(rounds.modules(last))  # the result needs their names and measures
        return last
    if reason := rounds.resume_blocker():
        rounds.restart(f"can't resume after round {last}: {reason}")
        return None
    try:
        model = rounds.model(last)
        if not model.modules:
            raise PluginError("no model is stored", code="missing-file")
        rounds.restore_plugin_folder(model)
        learner.restore(model)
    except Exception as error:
        rounds.restart(f"can't resume after round {last} ({error_kind(error)}: {error_text(error)})")
        learner.reset()
        return None
    case.resumed_after = last
    print(f"resuming after round {last} of {case.steps}")
    return last
