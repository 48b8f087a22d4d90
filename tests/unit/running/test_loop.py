"""The loop of one case, with a learner, an exam and a store in memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.base.types import RoundResult
from ianvs.running.loop import Case, CaseInterruptedError, Model, Phase, run_rounds

STEPS = 3


class Killed(BaseException):
    """As a signal is, nobody catches it."""


class Watch:
    """Notes what the loop calls; kills it before or after the n-th call."""

    def __init__(self, kill: int | None = None, *, after: bool = False) -> None:
        self.kill, self.after, self.called = kill, after, list[str]()

    def __call__(self, participant: Any) -> Any:
        return _Watched(self, participant)

    def called_as(self, name: str, call: Callable[[], Any]) -> Any:
        self.called.append(name)
        dies = self.kill == len(self.called)
        if dies and not self.after:
            raise Killed
        found = call()
        if dies:
            raise Killed
        return found


class _Watched:
    def __init__(self, watch: Watch, of: Any) -> None:
        self.__dict__.update(_watch=watch, _of=of)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        if not callable(found):
            return found
        return lambda *given, **named: self._watch.called_as(name, lambda: found(*given, **named))

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._of, name, value)


@dataclass
class Learner:
    """Two modules: one adds up what it is taught, the other keeps the last of it and knows the sum."""

    taught: list[int] = field(default_factory=list)
    memory: tuple[int, int] = (0, 0)
    can_save_untrained = True

    def train(self, step: int, valid: int) -> None:
        self.taught.append(step * 10)
        self.memory = (self.taught[-1], sum(self.taught) + self.memory[1])

    def save(self, folder: Any) -> Model:
        if not self.taught and not self.can_save_untrained:
            raise AttributeError("no network yet")
        return Model((("sum", tuple(self.taught)), ("memory", self.memory)))  # type: ignore[arg-type]

    def restore(self, model: Model, *, taught: bool = True) -> None:
        kept: dict[str, Any] = dict(copy.deepcopy(model.modules))  # type: ignore[arg-type]
        self.taught, self.memory = list(kept["sum"]), kept["memory"]

    def measure(self) -> None: ...

    def reset(self) -> None:
        self.taught, self.memory = [], (0, 0)

    def instantiate(self, modules: Sequence[Any]) -> int:
        return 2


@dataclass
class Examination:
    learner: Learner
    fails: Exception | None = None

    def predictions(self, model: Model, taught: int) -> Mapping[Any, Any]:
        if self.fails is not None and not taught:
            raise self.fails
        return {"end": (sum(self.learner.taught), self.learner.memory)}


@dataclass
class Source:
    """A stream that is examined once in each round and asked before it is told; its journal goes with the round."""

    journal: dict[int, str]
    saw_past_rounds: bool = False
    step: int = 0

    @property
    def evaluated(self) -> Mapping[Any, Any]:
        return {f"within {self.step}": self.step} if self.step else {}

    def begin(self, step: int) -> None:
        self.step = step

    def valid(self, step: int) -> int:
        self.journal.setdefault(step, f"first answers of {step}")
        return step

    def stream(self, *, last: bool) -> Mapping[str, Any]:
        return {"said": self.journal[self.step], "last": last}

    def end(self) -> None:
        self.journal.pop(self.step, None)


@dataclass
class Folder:
    model: dict[str, Any] = field(default_factory=dict)
    stored: dict[str, Any] = field(default_factory=dict)


@dataclass
class Rounds:
    """kept: by step what was filled in."""

    kept: dict[int, dict[str, Any]] = field(default_factory=dict)
    damaged: str = ""
    unsaved: str = ""
    told: list[str] = field(default_factory=list)

    def complete(self) -> tuple[Sequence[RoundResult], str]:
        return [one["result"] for _, one in sorted(self.kept.items())], self.damaged

    def resume_blocker(self) -> str:
        return self.unsaved

    @contextmanager
    def new_round(self, step: int) -> Iterator[Folder]:
        folder = Folder()
        yield folder
        self.kept[step] = folder.stored
        if step:
            self.kept[step - 1] = {**self.kept[step - 1], "model": Model()}

    def write(self, folder: Folder, result: RoundResult, predictions: Any, model: Model, stream: Any) -> None:
        folder.stored = {"result": result, "answers": predictions, "model": model, "stream": stream}

    def clear_model(self, folder: Folder) -> None:
        folder.model = {}

    def model(self, step: int) -> Model:
        found: Model = self.kept[step]["model"]
        return found

    def modules(self, step: int) -> Sequence[Any]:
        return self.kept[step]["model"].modules

    def restore_plugin_folder(self, model: Model) -> None: ...

    def restart(self, why: str) -> None:
        self.kept.clear()
        self.told.append(why)


@dataclass
class PhasedRounds(Rounds):
    """Rounds that are trained before one is evaluated: all models are kept until then."""

    phase: Phase = "train"

    def complete(self) -> tuple[Sequence[RoundResult], str]:
        stored = [one for _, one in sorted(self.kept.items())]
        done = [one["result"] for one in stored if self.phase == "train" or "end" in one["answers"]]
        return done, self.damaged

    def trained(self) -> Sequence[RoundResult]:
        return [one["result"] for _, one in sorted(self.kept.items())]

    @contextmanager
    def new_round(self, step: int) -> Iterator[Folder]:
        folder = Folder()
        yield folder
        self.kept[step] = folder.stored

    def add_predictions(self, result: RoundResult, predictions: Any) -> None:
        self.kept[result.index] |= {"result": result, "answers": predictions}


@dataclass
class ExaminationOfModels:
    """Asks a stored model, not the learner."""

    def predictions(self, model: Model, taught: int) -> Mapping[Any, Any]:
        kept: dict[str, Any] = dict(model.modules) or {"sum": (), "memory": (0, 0)}  # type: ignore[arg-type]
        return {"end": (sum(kept["sum"]), kept["memory"])}


@dataclass
class Summarizer:
    def untrained(self) -> RoundResult:
        return RoundResult(0, "untrained")

    def trained(self, step: int, model: Model, predictions: Any, *, adopted: bool, gate_scores: Any) -> RoundResult:
        return RoundResult(step, str(step), adopted=adopted, gate_scores=gate_scores)

    def evaluated(self, trained: RoundResult, predictions: Any) -> RoundResult:
        return trained


class Reporter:
    stops_before = STEPS + 1

    def __init__(self) -> None:
        self.asked = 0

    def round(self, step: int, doing: str) -> None: ...

    def stop_requested(self) -> bool:
        self.asked += 1
        return self.asked >= self.stops_before


@dataclass
class Gate:
    """Rejects some rounds."""

    rejects: tuple[int, ...]
    learner: Learner

    def score(self, model: Model, step: int) -> float:
        return float(sum(self.learner.taught))

    def decide(self, step: int, before: float | None, after: float | None) -> tuple[bool, tuple[float, float]]:
        assert before is not None and after is not None
        return step not in self.rejects, (before, after)


def case_of(
    rounds: Rounds, journal: dict[int, str], watch: Watch | None = None, *, rejects: tuple[int, ...] | None = None
) -> Case:
    watch, learner = watch or Watch(), Learner()
    return Case(
        steps=STEPS,
        last=STEPS,
        learner=watch(learner),
        examination=watch(Examination(learner)),
        source=watch(Source(journal)),
        rounds=watch(rounds),
        summarizer=watch(Summarizer()),
        reporter=watch(Reporter()),
        gate=None if rejects is None else watch(Gate(rejects, learner)),
    )


def undisturbed(**options: Any) -> dict[int, dict[str, Any]]:
    rounds = Rounds()
    run_rounds(case_of(rounds, {}, **options))
    return rounds.kept


def test_each_round_is_trained_saved_examined_and_stored_in_this_order() -> None:
    rounds, watch = Rounds(), Watch()
    run_rounds(case_of(rounds, {}, watch))
    telling = ("train", "save", "predictions", "trained", "write", "end")
    assert [name for name in watch.called if name in telling] == ["predictions", "save", "write", *telling * STEPS]
    assert [rounds.kept[step]["answers"]["end"][0] for step in range(STEPS + 1)] == [0, 10, 30, 60]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("rejects", [None, (2,)])
def test_a_case_that_is_killed_at_any_line_ends_as_one_that_was_not(after: bool, rejects: tuple[int, ...]) -> None:
    wanted, everything = undisturbed(rejects=rejects), Watch()
    run_rounds(case_of(Rounds(), {}, everything, rejects=rejects))
    for number in range(1, len(everything.called) + 1):
        rounds, journal = Rounds(), dict[int, str]()
        with pytest.raises(Killed):
            run_rounds(case_of(rounds, journal, Watch(number, after=after), rejects=rejects))
        run_rounds(case_of(rounds, journal, rejects=rejects))
        assert rounds.kept == wanted, everything.called[number - 1]


def phased(rounds: PhasedRounds, phase: Phase, watch: Watch, rejects: tuple[int, ...] | None) -> None:
    rounds.phase = phase
    case = case_of(rounds, {}, watch, rejects=rejects)
    case.phase, case.examination = phase, watch(ExaminationOfModels())
    case.reporter._of.stops_before = STEPS + 2  # type: ignore[attr-defined]
    run_rounds(case)


@pytest.mark.parametrize("rejects", [None, (2,)])
def test_models_can_be_evaluated_after_all_rounds_were_trained(rejects: tuple[int, ...] | None) -> None:
    rounds, trains, evaluates = PhasedRounds(), Watch(), Watch()
    phased(rounds, "train", trains, rejects)
    assert "predictions" not in trains.called and trains.called.count("train") == STEPS
    phased(rounds, "evaluate", evaluates, rejects)
    assert evaluates.called.count("predictions") == STEPS + 1 and "train" not in evaluates.called
    together = undisturbed(rejects=rejects)
    for step in range(STEPS + 1):
        assert rounds.kept[step]["answers"]["end"] == together[step]["answers"]["end"]
        assert rounds.kept[step]["result"] == together[step]["result"]


@pytest.mark.parametrize("phase", ["train", "evaluate"])
def test_a_phase_that_is_killed_at_any_line_ends_as_one_that_was_not(phase: Phase) -> None:
    def begun() -> PhasedRounds:
        rounds = PhasedRounds()
        if phase == "evaluate":
            phased(rounds, "train", Watch(), None)
        return rounds

    wanted, everything = begun(), Watch()
    phased(wanted, phase, everything, None)
    for number in range(1, len(everything.called) + 1):
        rounds = begun()
        with pytest.raises(Killed):
            phased(rounds, phase, Watch(number), None)
        phased(rounds, phase, Watch(), None)
        assert rounds.kept == wanted.kept, everything.called[number - 1]


def test_what_was_stored_is_trained_no_second_time() -> None:
    rounds, watch = Rounds(), Watch()
    case = case_of(rounds, {})
    case.last = 2
    run_rounds(case)
    assert sorted(rounds.kept) == [0, 1, 2]
    again = case_of(rounds, {}, watch)
    run_rounds(again)
    assert again.resumed_after == 2 and watch.called.count("train") == 1 and rounds.kept == undisturbed()
    finished = Watch()
    run_rounds(case_of(rounds, {}, finished))
    assert {"train", "restore", "write"}.isdisjoint(finished.called)


def test_a_rejected_round_leaves_the_model_of_the_round_before() -> None:
    kept = undisturbed(rejects=(2,))
    assert kept[2]["answers"]["end"] == kept[1]["answers"]["end"]
    assert (kept[2]["result"].adopted, kept[2]["result"].gate_scores) == (False, (10.0, 30.0))
    assert kept[3]["answers"]["end"][0] == 40


def test_a_gate_has_nothing_to_compare_the_first_model_with_that_could_not_answer_untrained() -> None:
    rounds = Rounds()
    case = case_of(rounds, {}, rejects=(1, 2))
    case.examination._of.fails = RuntimeError("no network yet")  # type: ignore[attr-defined]
    run_rounds(case)
    results = [rounds.kept[step]["result"] for step in (1, 2)]
    assert [(one.adopted, one.gate_scores) for one in results] == [(True, None), (False, (10.0, 30.0))]
    assert rounds.kept[0]["answers"] == {}


def test_what_breaks_a_rule_untrained_ends_the_case() -> None:
    case = case_of(Rounds(), {})
    case.examination._of.fails = ExamRuleError("no", code="broken-rule")  # type: ignore[attr-defined]
    with pytest.raises(ExamRuleError):
        run_rounds(case)


def test_a_learner_may_have_nothing_to_save_before_it_was_trained() -> None:
    rounds = Rounds()
    case = case_of(rounds, {})
    case.learner._of.can_save_untrained = False  # type: ignore[attr-defined]
    run_rounds(case)
    assert rounds.kept[3] == undisturbed()[3]


def test_answers_within_a_stream_and_before_it_was_told_are_stored_with_the_round() -> None:
    for step, one in undisturbed().items():
        assert one["answers"].get(f"within {step}") == (step or None)
        assert one["stream"] == ({"said": f"first answers of {step}", "last": step == STEPS} if step else {})


def test_the_first_answers_of_a_round_count_until_it_is_stored() -> None:
    """Who is killed while a round is written is asked again, and what it says then counts for nothing."""
    rounds, journal = Rounds(), dict[int, str]()
    with pytest.raises(Killed):
        run_rounds(case_of(rounds, journal, Watch(undisturbed_calls().index("trained") + 1)))
    assert journal == {1: "first answers of 1"}
    journal[1] = "what was said first"
    run_rounds(case_of(rounds, journal))
    assert rounds.kept[1]["stream"]["said"] == "what was said first" and not journal


def undisturbed_calls() -> list[str]:
    watch = Watch()
    run_rounds(case_of(Rounds(), {}, watch))
    return watch.called


def test_it_ends_between_two_rounds_when_it_is_asked_to() -> None:
    rounds = Rounds()
    case = case_of(rounds, {})
    case.reporter._of.stops_before = 2  # type: ignore[attr-defined]
    with pytest.raises(CaseInterruptedError):
        run_rounds(case)
    assert sorted(rounds.kept) == [0, 1]
    run_rounds(case_of(rounds, {}))
    assert rounds.kept == undisturbed()


def stopped_after_two(**facts: str) -> Rounds:
    rounds = Rounds()
    case = case_of(rounds, {})
    case.last = 2
    run_rounds(case)
    for name, value in facts.items():
        setattr(rounds, name, value)
    return rounds


def test_a_model_that_is_gone_or_can_not_be_loaded_is_made_again() -> None:
    for fault in (Model(), Model(("broken",))):  # type: ignore[arg-type]
        rounds = stopped_after_two()
        rounds.kept[2]["model"] = fault
        case = case_of(rounds, {})
        run_rounds(case)
        assert case.resumed_after is None and rounds.kept == undisturbed() and "round 2" in rounds.told[-1]


def test_an_algorithm_that_loses_something_by_saving_starts_over_and_says_so() -> None:
    rounds = stopped_after_two(unsaved="load() brings back nothing")
    case = case_of(rounds, {})
    run_rounds(case)
    assert case.resumed_after is None and "load() brings back nothing" in rounds.told[-1]


def test_a_damaged_round_is_told_and_what_stands_before_it_is_believed(capsys: pytest.CaptureFixture[str]) -> None:
    rounds = stopped_after_two(damaged="round 3 was damaged")
    case = case_of(rounds, {})
    run_rounds(case)
    assert case.resumed_after == 2 and "round 3 was damaged" in capsys.readouterr().out


def test_the_model_of_the_round_before_has_to_be_there_for_a_gate_that_rejects() -> None:
    class Losing(Rounds):
        def model(self, step: int) -> Model:
            return Model()

    with pytest.raises(PluginError):
        run_rounds(case_of(Losing(), {}, rejects=(2,)))
