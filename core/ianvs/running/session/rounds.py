"""The rounds of one case: trained, judged by the gate, examined, stored as they are done, and resumed."""

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ianvs.base.errors import ExamRuleError, PluginError, ReplyServerError
from ianvs.base.secrets import hide_secrets
from ianvs.base.types import SEALING_VERSION, Asked, Predictions, RoundResult, Sealing
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import data_type
from ianvs.exam.scenarios.budget import check_budget
from ianvs.exam.scenarios.exam import Exam
from ianvs.processes.engines.engine import Reporter
from ianvs.processes.sealing.peer import Handler, Message, RemoteError
from ianvs.processes.sealing.shared_arrays import ArrayWriter
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session import measure
from ianvs.running.session.examination import Examination
from ianvs.running.session.feed import Chunk, DataFeed
from ianvs.running.session.gate import Gate
from ianvs.running.session.handing import TrainingDataServer, described
from ianvs.running.session.kept_replies import CALLS, Replies
from ianvs.running.session.learner_messages import OF_STREAM, AnsweredCall, FeedCall, Progress, read
from ianvs.running.session.lineage import find_earlier, lineage_of
from ianvs.running.session.measure import NOTHING_SPENT, Spent
from ianvs.running.session.own_folder import bring_back_notes, keep_notes
from ianvs.running.session.remote import Learner, Model, error_kind
from ianvs.running.session.saving import SavingTrial
from ianvs.running.session.stored_answers import lacking, same_answers
from ianvs.running.session.stream_keeper import StreamKeeper
from ianvs.store import CaseStore, ExamStore, RoundFolder

_LONGEST_REMARK = 500  # characters
_MOST_TOLD = 128  # of quantities, and of points of each; a session tells of a hundred
_PERIOD = 5.0  # seconds between two notes of how far a round is
_FULL = tuple(f"[Errno {number}]" for number in (errno.ENOSPC, errno.EDQUOT))  # with it texts of an OSError begin


class Interrupted(Exception):  # noqa: N818 - not an error: a wish that was granted
    """The case was asked to end; what is complete is stored."""


class StartOver(Exception):  # noqa: N818 - a request to build fresh modules
    """The stored rounds can't be continued and were dropped; modules may be half loaded."""


class CaseRounds:
    """A case from its first step to its last, as the keeper takes it. The caller holds the case's lock.

    paused: it went to the step after which it was to pause, and there are others.
    learner: says by `handle` what it wants. may_take_over: whether it may begin where a case with fewer rounds has
    ended.
    """

    def __init__(
        self,
        request: CaseRequest,
        exam: Exam,
        make_learner: Callable[[Handler], Learner],
        report: Reporter,
        *,
        may_take_over: bool = True,
    ) -> None:
        self._request, self._exam, self._report, self._may_take_over = request, exam, report, may_take_over
        self._store, self._id = CaseStore(request.workspace), request.case.id
        self._predicts_untrained = True
        self.paused = False
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
        self.learner = make_learner(self._handle)
        folder, seed = self._store.folder(self._id), request.case.seed
        self._replies = Replies(request)
        self._examination = Examination(exam, request.testenv, self._feed, self.learner, seed, folder, self._replies)

    def go(self) -> None:
        folder = self._store.files(self._id)
        folder.mkdir(parents=True, exist_ok=True)
        self.ready = self.learner.prepare(folder)
        between, free = self._examine_between, self.ready.reference and not self.ready.stateless
        self._stream = self._stream_keeper() if not free else None
        self._data_server = TrainingDataServer(
            self._exam, self._feed, self._store.folder(self._id), between, self._stream, reference=free
        )
        names = self.ready.steps
        done = self._resume(len(names))
        folder.mkdir(parents=True, exist_ok=True)
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
        return self._data_server.saw_past_rounds or self.learner.state.past

    def _handle(self, name: str, told: Message) -> Message | None:
        if name == "progress":
            said = read(Progress, told.body).model_dump(exclude_none=True)
            self._report(said)
            for quantity, value in said.get("numbers", {}).items():
                known = self._curves.get(quantity, [(-1.0, 0.0)])
                if said["fraction"] > known[-1][0] and max(len(known), len(self._curves)) < _MOST_TOLD:
                    self._curves.setdefault(quantity, []).append((said["fraction"], value))
            if time.monotonic() > self._noted + _PERIOD:
                self._note_running(said)
            return None
        if name == "feed":
            return self._data_server.hand_out(read(FeedCall, told.body))
        if name in OF_STREAM and self._stream is not None:
            if name == "question":
                return self._stream.question()
            return self._stream.answered(read(AnsweredCall, told.body), told)
        if name in CALLS:
            return self._replies.handle(name, told)
        raise PluginError(f"there is nothing called '{name}' to be had", code="invalid-request")

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
            print(f"{who} can't predict before training ({error_kind(error)}: {error});")
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
            sealing=self._sealing(),
        )
        self._keep(untrained, predictions)
        return self._take_over_earlier_rounds()

    def _round(self, index: int, names: tuple[str, ...]) -> None:
        if self._report.stop_requested():
            raise Interrupted
        self._begin(index)
        self._say(index, len(names), "train")
        gate_before = self._gate_score(index) if index > 1 or self._predicts_untrained else None
        self._curves = {}
        self._train(index)
        curves = {name: tuple(points) for name, points in self._curves.items()}  # without what copies tell
        with self._store.new_round(self._id, index) as folder:
            self._save(folder)
            adopted, scores = self._pass_gate(index, gate_before, folder)
            self._say(index, len(names), "evaluate")
            trial = SavingTrial(self._examination, self.learner, index, last=index == len(names))
            predictions = self._examination.predictions(self._model, index, then=trial.ask_examined)
            self.learner.measure()
            result = self._result(index, names[index - 1], adopted, scores)
            said = (result.remark, self._examination.broken_down(predictions, index))
            result = replace(result, remark="; ".join(filter(None, said)), unsaved=self._unsaved(trial), curves=curves)
            budget = None if self.bound or self.ready.reference else self._request.testenv.budget
            check_budget(budget, result)
            self._fill(folder, result, self._answered | predictions, self._said_in_stream(last=index == len(names)))
        if self._stream is not None:
            self._stream.end()
        self._model = self._model_after(index)
        if index == len(names) and self._lineage:
            self._store.own(self._lineage[-1], self._id)

    def _begin(self, index: int) -> None:
        self._answered, self._examined = {}, []
        self._data_server.begin(index)
        if self._stream is not None and index:
            self._stream.begin(index)
        self._examination.spent = NOTHING_SPENT
        self.learner.clear()

    def _train(self, index: int) -> None:
        valid = None if self.ready.reference else self._feed.valid(index)
        if valid is None:
            self.learner.train(index, None, ())
            return
        writer, lender = ArrayWriter(0, self._store.folder(self._id)), self._data_server.lender()
        told = described(valid, writer, lender)
        files = (writer.sealed(), *lender.door())
        self.learner.train(index, told, files)
        for file in files:
            os.close(file)

    def _result(self, index: int, name: str, adopted: bool, scores: tuple[float, float] | None) -> RoundResult:
        learner, state, asked = self.learner, self.learner.state, self._examination.spent
        trained, stream = learner.spent + learner.unasked(), self._stream
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
            peak_memory_bytes=learner.peak_bytes(),
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
            sealing=self._sealing(),
            told=None if stream is None else stream.told_so_far,
            answer_seconds=0.0 if stream is None else stream.times.answering,
            feedback_seconds=0.0 if stream is None else stream.times.learning,
            stream_cpu_seconds=0.0 if stream is None else learner.spent.cpu_seconds,
        )

    @property
    def _handed_over(self) -> int:
        """Training samples, in the round that is under way."""
        return self._data_server.samples + (0 if self._stream is None else self._stream.samples)

    def _sealing(self) -> Sealing:
        """Of whoever was asked in the round that is under way."""
        how, one = self._request.sealing, self.learner
        missing, denied = tuple(sorted({*one.walls, *one.missing})), tuple(sorted(one.denied.items()))
        copies = Sealing.weakest(Sealing(copies=copies) for copies in one.asked or ("new processes",)).copies
        return Sealing(how, copies, "files" not in one.walls, missing, denied, SEALING_VERSION)

    def _unsaved(self, trial: SavingTrial) -> str:
        """What is lost when the case goes on from what was saved, looked at once; "" where nothing was taught."""
        if not self._handed_over:
            return ""
        said = trial.lost(self._model, strict=self._request.sealing == "strict")
        return hide_secrets(said, known=self._request.secrets)

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
            self._answered |= self._examination.predictions(model, self._data_server.step - 1, chunk.samples)
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
            self._store.folder(self._id),
            self.learner.cpu_seconds,
            self._ahead,
            lambda chunk: self._examine_between(chunk) if self._feed.examines_after(chunk) else None,
            tells=not self.ready.stateless,
            hears=self.ready.hears,
        )

    def _ahead(self, parts: Sequence[Part]) -> list[Any]:
        with self._as_it_is() as model:
            taught = self._data_server.step
            return self._examination.ahead(parts, self.learner.answering(model), taught)

    def _said_in_stream(self, *, last: bool) -> dict[str, NDArray[Any]]:
        if self._stream is None or self.bound:
            return {}
        for chunk in self._stream.differing:
            print(f"answers differently since it was killed: chunk {chunk}")
        return self._stream.record(last=last)

    @contextmanager
    def _as_it_is(self) -> Iterator[Model]:
        """What copies begin from: the learner as it is within a round."""
        root = self._store.folder(self._id)
        apart = nullcontext() if self._stream is None else self.learner.apart()  # else the whole call is
        with apart, tempfile.TemporaryDirectory(prefix=".model-", dir=root) as folder:
            yield self.learner.save(Path(folder)) if self.learner.needs_model else self._model

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
        """The model as it is now, for copies and for the round that is being written."""
        try:
            self._model = self.learner.save(folder.model)
        except RemoteError as error:
            if error.kind == "OSError" and str(error).startswith(_FULL):
                raise OSError(errno.ENOSPC, f"save() could not write the model ({error})") from error
            raise

    def _fill(
        self,
        folder: RoundFolder,
        result: RoundResult,
        predictions: Mapping[Asked, Predictions],
        stream: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        size = measure.saved_bytes(folder.model, self._request.saved_mb)
        if self._stream is not None:
            keep_notes(self._store.files(self._id), folder.model)
        folder.fill(replace(result, model_bytes=size or None), predictions, self._model.modules, stream)

    def _model_after(self, index: int) -> Model:
        """As it is stored; without modules where it is gone."""
        return Model(self._store.modules(self._id, index) or (), self._store.model_folder(self._id, index))

    @cached_property
    def _lineage(self) -> tuple[str, ...]:
        record = ExamStore(self._request.workspace).record(self._request.exam_id)
        return lineage_of(self._request, record) if record and self._exam.stream is None else ()

    def _take_over_earlier_rounds(self) -> int:
        """Begin where a case with fewer rounds has ended, if its beginning is ours; the last round that is complete.

        Test sets that only our exam has are predicted by its last model; for its earlier rounds they stay empty, which
        is allowed only where no formula reads them.
        """
        earlier = find_earlier(self._request, self._lineage) if self._may_take_over else None
        if earlier is None or lacking(earlier.predictions(earlier.last), map(earlier.result, range(earlier.last + 1))):
            return 0
        try:
            model = Model(earlier.modules, self._store.model_folder(earlier.case_id, earlier.last))
            now = self._brought_back(model, earlier.result(earlier.last))
        except ReplyServerError:
            raise
        except Exception as error:
            print(f"can't continue from case {earlier.case_id} ({error_kind(error)}: {error}).")
            raise StartOver from error
        if not same_answers(now, earlier.predictions(earlier.last)):
            print(f"can't continue from case {earlier.case_id}: load() does not bring back its predictions.")
            raise StartOver
        print(f"continuing from case {earlier.case_id} after round {earlier.last}")
        for index in range(1, earlier.last):
            with self._store.new_round(self._id, index) as folder:  # their own models are gone
                folder.fill(earlier.result(index), earlier.predictions(index))
        self._keep(earlier.result(earlier.last), now)
        return earlier.last

    def _brought_back(self, model: Model, before: RoundResult) -> dict[Asked, Predictions]:
        """What the learner answers when it is again what it was after a round."""
        self._model = model
        if self._stream is not None:
            bring_back_notes(model.folder, self._store.files(self._id))
        self.learner.restore(model)
        if self.learner.adapts and before.sealing is not None and before.sealing.copies != "none":
            # It would be asked before a round begins, and no round would say so.
            raise PluginError("adapts_in_testing is True now, and was not before", code="broken-contract")
        return self._examination.predictions(model, before.index)

    def _resume(self, rounds: int) -> int:
        """Bring back the modules of the last complete round, and make sure that they are the same; its index, or -1.

        A plugin whose load() does not bring back what was saved would end with other results than an undisturbed run;
        it is found out by its predictions, and the case starts over.
        """
        done = self._store.complete_rounds(self._id, thoroughly=True)
        damage = ""
        if (broken := self._store.broken_round(self._id)) is not None:
            damage = f"round {broken} was damaged, or changed after it was stored"
            print(f"{damage}: it is not believed.")
        if len(done) <= 1:
            self._start_over(damage)
            return -1
        last = done[-1].index
        before = {a: said for a, said in self._store.predictions(self._id, last).items() if a.samples is None}
        if why := lacking(before, done):
            self._start_over(why)
            return -1
        self._data_server.saw_past_rounds = done[-1].bound
        if last == rounds:
            self.learner.instantiate(self._store.module_names(self._id, last))  # they are asked once more who they are
            return last
        try:
            model = self._model_after(last)
            if not model.modules:
                raise PluginError("no model is stored", code="missing-file")
            now = self._brought_back(model, done[-1])
            if now.keys() != before.keys() or not same_answers(now, before):
                raise PluginError("load() does not bring back the predictions of before save()", code="broken-contract")
        except ReplyServerError:  # what is stored is as good as before
            raise
        except Exception as error:
            self._start_over(f"can't resume after round {last} ({error_kind(error)}: {error})")
            raise StartOver from error
        print(f"resuming after round {last} of {rounds}")
        return last

    def _start_over(self, why: str) -> None:
        """Drop what is stored of the case. why: in the log and for the user; "" where nothing of it was complete."""
        if why:
            said = hide_secrets(f"{why}; starting over from round 1", known=self._request.secrets)
            print(said)
            self._report({"round": 0, "warning": said})
        self._store.reset(self._id, first_answers_count=True)
