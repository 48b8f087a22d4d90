"""The rounds of one case: trained, judged by the gate, examined, stored as they are done, and resumed."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ianvs.base.errors import ExamRuleError, PluginError, ReplyServerError
from ianvs.base.secrets import hide_secrets
from ianvs.base.types import Asked, Predictions, RoundResult
from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import data_type
from ianvs.exam.scenarios.budget import check_budget
from ianvs.exam.scenarios.exam import Exam
from ianvs.processes.engines.engine import Reporter
from ianvs.processes.interpreters.wire import error_kind
from ianvs.processes.proc import children, own_cpu_seconds
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session import measure
from ianvs.running.session.examination import Examination
from ianvs.running.session.feed import Chunk, DataFeed, Handout
from ianvs.running.session.gate import Gate
from ianvs.running.session.known_replies import Replies
from ianvs.running.session.learner import LocalLearner, Model, error_text
from ianvs.running.session.measure import NOTHING_SPENT, Spent
from ianvs.running.session.own_folder import bring_back_notes, keep_notes
from ianvs.running.session.saving import lost_by_saving
from ianvs.running.session.session import Brief, FeedCall, Whole
from ianvs.running.session.stream_keeper import StreamKeeper
from ianvs.running.session.training_data import TrainingData
from ianvs.store import CaseStore, RoundFolder
from ianvs.store.keys import digest

_LONGEST_REMARK = 500  # characters
_MOST_TOLD = 128  # of quantities, and of points of each; a session tells of a hundred
_PERIOD = 5.0  # seconds between two notes of how far a round is


class Interrupted(Exception):  # noqa: N818 - not an error: a wish that was granted
    """The case was asked to end; what is complete is stored."""


class CaseRounds:
    """A case from its first step to its last. The caller holds the case's lock.

    paused: it went to the step after which it was to pause, and there are others. resumed_after: the round that was
    complete before this process; None: it began anew.
    """

    def __init__(self, request: CaseRequest, exam: Exam, report: Reporter) -> None:
        self._request, self._exam, self._report = request, exam, report
        self._store, self._id = CaseStore(request.workspace), request.case.id
        self._predicts_untrained = True
        self.paused = False
        self.resumed_after: int | None = None
        self._feed = DataFeed(
            exam, request.train_ratio, request.case.seed, exam.rules.passes, request.testenv.dataset.data_type
        )
        self._model = Model()
        # Within the step that is under way, if it is one of a stream; examined: (samples, rounds begun, rounds ended).
        self._answered: dict[Asked, Predictions] = {}
        self._examined: list[tuple[int, int, int]] = []
        self._curves: dict[str, list[tuple[float, float]]] = {}  # of the call that is under way
        self._now: dict[str, object] = {}
        self._noted = 0.0
        brief = Brief(
            kind=exam.dataset.kind,
            rounds=tuple(round_.name for round_ in exam.rounds),
            classes=exam.dataset.classes,
            rules=exam.rules,
            streams=exam.stream is not None,
        )
        self.learner = LocalLearner(request, brief, self)
        self._examination = Examination(
            exam, request.testenv, self._feed, self.learner, request.case.seed, Replies(request)
        )

    def go(self) -> None:
        """Every round that has not been done yet."""
        folder = self._store.files(self._id)
        folder.mkdir(parents=True, exist_ok=True)
        self.ready = self.learner.prepare(folder)
        free = self.ready.reference and not self.ready.stateless
        self._stream = self._stream_keeper() if not free else None
        self._data = TrainingData(self._exam, self._feed, self._examine_between, self._stream, reference=free)
        names = self.ready.steps
        done = self._resume(len(names))
        if done < 0:
            done = self._untrained()
        until = self._request.until
        last = len(names) if until is None else min(until, len(names))
        for index in range(done + 1, last + 1):
            self._round(index, names)
        self.paused = last < len(names)

    @property
    def bound(self) -> bool:
        """Whether it sees past rounds: a class of its says so, or its paradigm has asked for them."""
        return self._data.saw_past_rounds or self.learner.state.past

    # --- what the learner asks for (ianvs.running.session.session.Source) ---

    def asked_for(self, asked: FeedCall) -> Whole | Iterator[tuple[int, Chunk, Handout, float]] | StreamKeeper:
        return self._data.asked_for(asked)

    def progress(self, round_: int, fraction: float, rounds: int | None, numbers: Mapping[str, float]) -> None:
        """Tell the supervisor how far the round is, and keep points of curves."""
        said: dict[str, object] = {"round": round_, "fraction": fraction}
        said |= {"rounds": rounds} if rounds is not None else {}
        said |= {"numbers": dict(numbers)} if numbers else {}
        self._report(said)
        for quantity, value in numbers.items():
            known = self._curves.get(quantity, [(-1.0, 0.0)])
            if fraction > known[-1][0] and max(len(known), len(self._curves)) < _MOST_TOLD:
                self._curves.setdefault(quantity, []).append((fraction, value))
        if time.monotonic() > self._noted + _PERIOD:
            self._note_running(said)

    # --- steps --------------------------------------------------------------------------------------------------

    def _untrained(self) -> int:
        """Row 0; the last round that is complete afterwards. A plugin that can't predict untrained has an empty row."""
        self._begin(0)
        try:
            predictions = self._examination.predictions(self._model, 0)
        except (ExamRuleError, ReplyServerError):
            raise
        except Exception as error:
            self.learner.instantiate(())
            if not self.learner.state.modules:
                raise  # none could be built
            who = self.learner.state.who.partition(".")[0]
            print(f"{who} can't predict before training ({error_kind(error)}: {error_text(error)});")
            print("what needs the untrained model (FWT, Ianvs's BWT and FWT) stays empty.")
            predictions, self._examination.spent = {}, NOTHING_SPENT
            self._predicts_untrained = False
        else:
            self.learner.measure()
        untrained = RoundResult(
            0,
            "untrained",
            eval_seconds=self._examination.spent.seconds,
            eval_cpu_seconds=self._examination.spent.cpu_seconds,
            cut_answers=self._examination.spent.cut,
            measures=dict(self.learner.state.measures),
            changed=self._changed(),
        )
        self._keep(untrained, predictions)
        return 0

    def _round(self, index: int, names: tuple[str, ...]) -> None:
        if self._report.stop_requested():
            raise Interrupted
        self._begin(index)
        self._say(index, len(names), "train")
        gate_before = self._gate_score(index) if index > 1 or self._predicts_untrained else None
        self._curves = {}
        valid = None if self.ready.reference else self._feed.valid(index)
        self.learner.train(index, valid)
        curves = {name: tuple(points) for name, points in self._curves.items()}  # without what copies tell
        with self._store.new_round(self._id, index) as folder:
            self._save(folder)
            adopted, scores = self._pass_gate(index, gate_before, folder)
            self._say(index, len(names), "evaluate")
            predictions = self._examination.predictions(self._model, index)
            self.learner.measure()
            result = self._result(index, names[index - 1], adopted, scores)
            said = (result.remark, self._examination.broken_down(predictions, index), measure.compiled_code())
            unsaved = self._unsaved(index) if index == len(names) else ""
            result = replace(result, remark="; ".join(filter(None, said)), unsaved=unsaved, curves=curves)
            budget = None if self.bound or self.ready.reference else self._request.testenv.budget
            check_budget(budget, result)
            self._fill(folder, result, self._answered | predictions, self._said_in_stream(last=index == len(names)))
        if self._stream is not None:
            self._stream.end()
        self._model = self._model_after(index)

    def _begin(self, index: int) -> None:
        self._answered, self._examined = {}, []
        self._data.begin(index)
        if self._stream is not None and index:
            self._stream.begin(index)
        self._examination.spent, self.learner.changed = NOTHING_SPENT, ""

    def _result(self, index: int, name: str, adopted: bool, scores: tuple[float, float] | None) -> RoundResult:
        learner, state, asked = self.learner, self.learner.state, self._examination.spent
        trained, stream = learner.spent, self._stream
        if stream is not None:  # the time in which it answers is none of its training
            answering = Spent(stream.times.answering, stream.times.cpu)
            asked += answering
            trained = Spent(stream.times.learning, max(0.0, trained.cpu_seconds - answering.cpu_seconds))
        return RoundResult(
            index=index,
            name=name,
            train_samples=self._handed_over,
            test_samples=sum(len(test.test) for test in self._exam.tests),
            train_seconds=trained.seconds,
            eval_seconds=asked.seconds,
            train_cpu_seconds=trained.cpu_seconds,
            eval_cpu_seconds=asked.cpu_seconds,
            cut_answers=asked.cut,
            peak_memory_bytes=self._peak_bytes(),
            peak_gpu_bytes=state.peak_gpu_bytes,
            memory_samples=state.memory_samples,
            memory_bytes=state.memory_bytes,
            adopted=adopted,
            gate_scores=scores,
            passes=state.passes,
            remark=hide_secrets(state.remark, known=self._request.secrets)[:_LONGEST_REMARK],
            examined=(*self._examined, (self._feed.arrived(index), index, index)),
            measures=dict(state.measures),
            bound=self.bound,
            unscored=hide_secrets(self._examination.unscored, known=self._request.secrets),
            changed=self._changed(),
            told=None if stream is None else stream.told_so_far,
            answer_seconds=0.0 if stream is None else stream.times.answering,
            feedback_seconds=0.0 if stream is None else stream.times.learning,
            stream_cpu_seconds=0.0 if stream is None else learner.spent.cpu_seconds,
        )

    @property
    def _handed_over(self) -> int:
        """Training samples, in the round that is under way."""
        return self._data.samples + (0 if self._stream is None else self._stream.samples)

    def _changed(self) -> str:
        return hide_secrets(self.learner.changed, known=self._request.secrets)

    def _peak_bytes(self) -> int:
        """Of this process, and of those that its plugins live in."""
        others = children(os.getpid()) if self._request.algorithm.python is not None else ()
        return measure.peak_host_bytes() + sum(map(measure.peak_host_bytes, others))

    def _unsaved(self, index: int) -> str:
        """What is lost when the case goes on from what was saved; "" where nothing was taught."""
        if not self._handed_over:
            return ""
        said = lost_by_saving(self._examination, self.learner, self._model, index)
        said = hide_secrets(said, known=self._request.secrets)
        if said:
            print(f"can't be resumed: {said}")
            with suppress(OSError):
                write_memo(self._unsaved_memo, said)
        return said

    @property
    def _unsaved_memo(self) -> Path:
        """Where it is noted that this algorithm does not bring back what it saves."""
        key = digest([self._request.identity["algorithm"]])
        return self._request.workspace / "cache" / "unsaved" / f"{key}.json"

    def _say(self, index: int, count: int, doing: str) -> None:
        """To the supervisor, and to whoever asks `ianvs status`."""
        now = {"round": index, "rounds": count, "doing": doing}
        state = getattr(self.learner, "state", None)  # of the round before
        self._report({**now, "peak_gpu_bytes": state and state.peak_gpu_bytes})
        self._now = {**now, "since": time.time(), "pid": os.getpid()}
        self._note_running({})

    def _note_running(self, inside: Mapping[str, object]) -> None:
        """inside: how far the round is, and what the learner says of it."""
        self._noted = time.monotonic()
        self._now |= inside
        self._store.note_running(self._id, self._now)

    # --- evaluation ---------------------------------------------------------------------------------------------

    def _examine_between(self, chunk: Chunk) -> None:
        with self._as_it_is() as model:
            self._answered |= self._examination.predictions(model, self._data.step - 1, chunk.samples)
        self._examined.append((chunk.samples, chunk.begun, chunk.ended))

    def _stream_keeper(self) -> StreamKeeper | None:
        spec, exam = self._request.testenv.prequential, self._exam
        if spec is None or exam.stream is None:
            return None
        return StreamKeeper(
            exam,
            spec,
            self._feed,
            data_type(exam.dataset.kind, self._request.testenv.dataset.data_type),
            self._request.algorithm.stream_cost,
            partial(self._store.journal, self._id),
            own_cpu_seconds,
            self._ahead,
            lambda chunk: self._examine_between(chunk) if self._feed.examines_after(chunk) else None,
            tells=not self.ready.stateless,
            hears=self.ready.hears,
        )

    def _ahead(self, parts: Sequence[Part]) -> list[Any]:
        with self._as_it_is() as model:
            return self._examination.ahead(parts, model, self._data.step)

    def _said_in_stream(self, *, last: bool) -> dict[str, NDArray[Any]]:
        if self._stream is None or self.bound:
            return {}
        for chunk in self._stream.differing:
            print(f"answers differently since it was killed: chunk {chunk}")
        return self._stream.record(last=last)

    @contextmanager
    def _as_it_is(self) -> Iterator[Model]:
        """The learner as it is within a round, saved; what happens within is not counted as its training."""
        root = self._store.folder(self._id)
        with self.learner.apart(), tempfile.TemporaryDirectory(prefix=".model-", dir=root) as folder:
            yield self.learner.save(Path(folder), of_round=False)

    @cached_property
    def _gate(self) -> Gate | None:
        spec = self._request.testenv.gate
        return None if spec is None or self.ready.reference else Gate(spec)

    def _gate_score(self, index: int) -> float | None:
        """Score of the present model on the held-out part of round `index`; None without a gate."""
        if self._gate is None:
            return None
        held_out = self._feed.valid(index) is not None
        return self._gate.score(self._examination.held_out(self._model, index) if held_out else None)

    def _pass_gate(
        self, index: int, before: float | None, folder: RoundFolder
    ) -> tuple[bool, tuple[float, float] | None]:
        """Whether the new model stays; if not, the model of the round before is back in place."""
        if self._gate is None:
            return True, None
        if before is None and index == 1 and not self._predicts_untrained:
            return True, None  # there is no model yet that could be kept instead
        stays, scores = self._gate.decide(index, before, self._gate_score(index))
        if not stays:
            previous = self._model_after(index - 1)
            if not previous.modules:
                raise PluginError(
                    f"model_eval: the model of round {index - 1} is gone, so round {index} can't be undone.",
                    code="missing-file",
                )
            self.learner.restore(previous, taught=False)
            shutil.rmtree(folder.model)
            folder.model.mkdir()
            self._save(folder)
        return stays, scores

    # --- storing ------------------------------------------------------------------------------------------------

    def _keep(self, result: RoundResult, predictions: Mapping[Asked, Predictions]) -> None:
        with self._store.new_round(self._id, result.index) as folder:
            try:
                self._save(folder)
            except Exception:
                if result.index:
                    raise
                self._model = Model()  # a plugin that has nothing to save before it was trained
            self._fill(folder, result, predictions)
        self._model = self._model_after(result.index)

    def _save(self, folder: RoundFolder) -> None:
        """The model as it is now, in the round that is being written."""
        self._model = self.learner.save(folder.model)

    def _fill(
        self,
        folder: RoundFolder,
        result: RoundResult,
        predictions: Mapping[Asked, Predictions],
        stream: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        size = measure.saved_bytes(folder.model, self._request.saved_mb)
        keep_notes(self._store.files(self._id), folder.model)
        folder.fill(replace(result, model_bytes=size or None), predictions, self._model.modules, stream)

    def _model_after(self, index: int) -> Model:
        """As it is stored; without modules where it is gone."""
        return Model(self._store.modules(self._id, index) or (), self._store.model_folder(self._id, index))

    def _resume(self, rounds: int) -> int:
        """Bring back the modules of the last complete round, whose checksum is trusted; its index, or -1."""
        done = self._store.complete_rounds(self._id, thoroughly=True)
        damage = ""
        if (broken := self._store.broken_round(self._id)) is not None:
            damage = f"round {broken} was damaged, or changed after it was stored"
            print(f"{damage}: it is not believed.")
        if len(done) <= 1:
            self._start_over(damage)
            return -1
        last = done[-1].index
        self._data.saw_past_rounds = done[-1].bound
        if last == rounds:
            self.learner.instantiate(self._store.module_names(self._id, last))  # they are asked once more who they are
            return last
        if (said := read_memo(self._unsaved_memo)) is not None:
            self._start_over(f"can't resume after round {last}: {said}")
            return -1
        try:
            model = self._model_after(last)
            if not model.modules:
                raise PluginError("no model is stored", code="missing-file")
            bring_back_notes(model.folder, self._store.files(self._id))
            self.learner.restore(model)
        except Exception as error:
            self._start_over(f"can't resume after round {last} ({error_kind(error)}: {error_text(error)})")
            self.learner.forget()
            return -1
        self._model, self.resumed_after = model, last
        print(f"resuming after round {last} of {rounds}")
        return last

    def _start_over(self, why: str) -> None:
        """Drop what is stored of the case. why: in the log and for the user; "" where nothing of it was complete."""
        if why:
            said = hide_secrets(f"{why}; starting over from round 1", known=self._request.secrets)
            print(said)
            self._report({"round": 0, "warning": said})
        self._store.reset(self._id, first_answers_count=True)
