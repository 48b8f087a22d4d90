"""The rounds of one case: trained, judged by the gate, examined, stored as they are done, and resumed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from ianvs.engines.engine import Reporter
from ianvs.errors import ExamRuleError, PluginError
from ianvs.kinds import KINDS
from ianvs.kinds.picture_kind import EVERY
from ianvs.metrics.registry import resolve
from ianvs.planning.case_request import CaseRequest
from ianvs.scenarios.exam import Exam
from ianvs.session import measure
from ianvs.session.budget import check_budget
from ianvs.session.evaluation import Evaluation
from ianvs.session.feed import Chunk
from ianvs.session.gate import Gate
from ianvs.session.lineage import find_earlier, lineage_of
from ianvs.session.session import CaseSession, Step
from ianvs.store import CaseStore, ExamStore
from ianvs.types import Asked, Predictions, RoundResult

__all__ = ["CaseRounds", "Interrupted", "StartOver"]


class Interrupted(Exception):  # noqa: N818 - not an error: a wish that was granted
    """The case was asked to end; what is complete is stored."""


class StartOver(Exception):  # noqa: N818 - a request to build fresh modules
    """The stored rounds can't be continued and were dropped; modules may be half loaded."""


class CaseRounds:
    """A case from its first step to its last. The caller holds the case's lock.

    may_take_over: whether it may begin where a case with fewer rounds has ended.
    """

    def __init__(
        self,
        request: CaseRequest,
        exam: Exam,
        session: CaseSession,
        report: Reporter,
        *,
        may_take_over: bool = True,
    ) -> None:
        self._request, self._exam, self._paradigm, self._session = request, exam, session.paradigm, session
        self._report, self._may_take_over = report, may_take_over
        self._store, self._id = CaseStore(request.workspace), request.case.id
        self._predicts_untrained = True

    def go(self) -> None:
        """Go through the steps that are not complete yet, in order."""
        self._session.between = self._examine_between
        names = tuple(self._paradigm.steps(self._session))
        done = self._resume(len(names))
        self._store.files(self._id).mkdir(parents=True, exist_ok=True)
        if done < 0:
            done = self._untrained()
        for index in range(done + 1, len(names) + 1):
            self._round(index, names)

    # --- steps --------------------------------------------------------------------------------------------------

    def _untrained(self) -> int:
        """Row 0; the last round that is complete afterwards. A plugin that can't predict untrained has an empty row."""
        step = self._session.begin(0)
        try:
            predictions = self._evaluation.predictions(0)
        except ExamRuleError:
            raise
        except Exception as error:
            if not list(self._session.modules):
                raise  # none could be built
            print(f"{self._who()} can't predict before training ({type(error).__name__}: {error});")
            print("what needs the untrained model (FWT, Ianvs's BWT and FWT) stays empty.")
            predictions, step.asked = {}, measure.NOTHING_SPENT
            self._predicts_untrained = False
        spent = step.asked
        self._keep(
            RoundResult(0, "untrained", eval_seconds=spent.seconds, eval_cpu_seconds=spent.cpu_seconds), predictions
        )
        return self._take_over_earlier_rounds()

    def _round(self, index: int, names: tuple[str, ...]) -> None:
        if self._report.stop_requested():
            raise Interrupted
        session = self._session
        step = session.begin(index)
        self._say(index, len(names), "train")
        valid = session.valid = session.feeder.valid(index) if not self._paradigm.reference else None
        gate_before = self._gate_score(index) if index > 1 or self._predicts_untrained else None
        self._paradigm.train(index, session)
        adopted, scores = self._pass_gate(index, gate_before)
        if valid is not None:
            valid.close()
        self._say(index, len(names), "evaluate")
        predictions = self._evaluation.predictions(index)
        result = self._result(step, names[index - 1], adopted, scores)
        check_budget(None if session.bound or self._paradigm.reference else self._request.testenv.budget, result)
        self._keep(result, step.predictions | predictions)
        if index == len(names) and self._lineage:
            self._store.own(self._lineage[-1], self._id)

    def _result(self, step: Step, name: str, adopted: bool, scores: tuple[float, float] | None) -> RoundResult:
        samples, size = measure.memory_size([module.plugin for module in self._session.modules])
        end = (self._session.feeder.arrived(step.index), step.index, step.index)
        return RoundResult(
            index=step.index,
            name=name,
            train_samples=step.samples,
            test_samples=sum(len(test.test) for test in self._exam.tests),
            train_seconds=step.trained.seconds,
            eval_seconds=step.asked.seconds,
            train_cpu_seconds=step.trained.cpu_seconds,
            eval_cpu_seconds=step.asked.cpu_seconds,
            peak_memory_bytes=measure.peak_host_bytes(),
            peak_gpu_bytes=measure.peak_gpu_bytes(),
            memory_samples=samples,
            memory_bytes=size,
            adopted=adopted,
            gate_scores=scores,
            passes=step.passes,
            remark=self._session.modules.remark,
            examined=(*step.examined, end),
            measures=step.measures,
            bound=self._session.bound,
        )

    def _say(self, index: int, count: int, doing: str) -> None:
        """To the supervisor, and to whoever asks `ianvs status`."""
        now = {"round": index, "rounds": count, "doing": doing}
        self._report(now)
        self._store.note_running(self._id, {**now, "since": time.time(), "pid": os.getpid()})

    # --- evaluation ---------------------------------------------------------------------------------------------

    @cached_property
    def _keeps_every(self) -> bool:
        """Whether all answers are kept, for a metric that reads them, where the kind of data would keep less."""
        metrics = (resolve(metric) for metric, _ in self._request.scores if metric.url is not None)
        return KINDS[self._exam.dataset.kind].condenses and any(metric.pictures for metric in metrics)

    @cached_property
    def _evaluation(self) -> Evaluation:
        probe = self._request.testenv.linear_probe
        return Evaluation(self._exam, self._paradigm, self._session, probe=probe, every=self._keeps_every)

    def _examine_between(self, chunk: Chunk) -> None:
        step = self._session.step
        step.predictions |= self._evaluation.predictions(step.index - 1, chunk.samples)
        step.examined.append((chunk.samples, chunk.begun, chunk.ended))

    @cached_property
    def _gate(self) -> Gate | None:
        spec = self._request.testenv.gate
        return None if spec is None or self._paradigm.reference else Gate(spec)

    def _gate_score(self, index: int) -> float | None:
        """Score of the present model on the held-out part of round `index`; None without a gate."""
        if self._gate is None:
            return None
        seen = None
        if self._session.valid is not None:
            every = self._gate.pictures and KINDS[self._exam.dataset.kind].condenses
            seen = self._evaluation.held_out(index, self._session.feeder.held_out(index), every)
        return self._gate.score(seen)

    def _pass_gate(self, index: int, before: float | None) -> tuple[bool, tuple[float, float] | None]:
        """Whether the new model stays; if not, the model of the round before is back in place."""
        if self._gate is None:
            return True, None
        if before is None and index == 1 and not self._predicts_untrained:
            return True, None  # there is no model yet that could be kept instead

        def undo() -> None:
            previous = self._store.modules(self._id, index - 1)
            if previous is None:
                raise PluginError(
                    f"model_eval: the model of round {index - 1} is gone, so round {index} can't be undone."
                )
            self._session.modules.restore(previous, taught=False)

        return self._gate.decide(index, before, self._gate_score(index), undo)

    # --- storing ------------------------------------------------------------------------------------------------

    def _keep(self, result: RoundResult, predictions: Mapping[Asked, Predictions]) -> None:
        with self._store.new_round(self._id, result.index) as folder:
            try:
                modules = self._session.modules.save(folder.model)
            except Exception:
                if result.index:
                    raise
                modules = []  # a plugin that has nothing to save before it was trained
                shutil.rmtree(folder.model)
                folder.model.mkdir()
            size = measure.folder_bytes(folder.model)
            folder.fill(replace(result, model_bytes=size or None), predictions, modules)

    @cached_property
    def _lineage(self) -> tuple[str, ...]:
        record = ExamStore(self._request.workspace).record(self._request.exam_id)
        return lineage_of(self._request, record) if record and self._exam.stream is None else ()

    def _take_over_earlier_rounds(self) -> int:
        """Begin where a case with fewer rounds has ended, if its beginning is ours; the last round that is complete.

        Test sets that only our exam has are predicted by its last model; for its earlier rounds they stay empty.
        """
        earlier = find_earlier(self._request, self._lineage) if self._may_take_over else None
        if earlier is None or not self._is_enough(earlier.predictions(earlier.last)):
            return 0
        try:
            self._session.modules.restore(earlier.modules)
            now = self._evaluation.predictions(earlier.last)
        except Exception as error:
            print(f"can't continue from case {earlier.case_id} ({type(error).__name__}: {error}).")
            raise StartOver from error
        if not _same(now, earlier.predictions(earlier.last)):
            print(f"can't continue from case {earlier.case_id}: load() does not bring back its predictions.")
            raise StartOver
        print(f"continuing from case {earlier.case_id} after round {earlier.last}")
        for index in range(1, earlier.last):
            with self._store.new_round(self._id, index) as folder:  # their own models are gone
                folder.fill(earlier.result(index), earlier.predictions(index))
        self._keep(earlier.result(earlier.last), now)
        return earlier.last

    def _resume(self, rounds: int) -> int:
        """Bring back the modules of the last complete round, and make sure that they are the same; its index, or -1.

        A plugin whose load() does not bring back what was saved would end with other results than an undisturbed run;
        it is found out by its predictions, and the case starts over.
        """
        done = self._store.complete_rounds(self._id)
        if len(done) <= 1:
            self._store.reset(self._id)
            return -1
        last = done[-1].index
        stored = self._store.predictions(self._id, last)
        before = {asked: said for asked, said in stored.items() if asked.samples is None}
        if not self._is_enough(before):
            print(
                "a metric reads all predicted label pictures, and only counts are stored; starting over from round 1."
            )
            self._store.reset(self._id)
            return -1
        self._session.saw_past_rounds = done[-1].bound
        if last == rounds:
            for one in self._store.modules(self._id, last) or ():
                self._session.module(one.kind, one.instance)  # who they are is asked of them once more
            return last
        try:
            modules = self._store.modules(self._id, last)
            if modules is None:
                raise PluginError("no model is stored")
            self._session.modules.restore(modules)
            now = self._evaluation.predictions(last)
            if now.keys() != before.keys() or not _same(now, before):
                raise PluginError("load() does not bring back the predictions of before save()")
        except Exception as error:
            print(f"can't resume after round {last} ({type(error).__name__}: {error}); starting over from round 1.")
            self._store.reset(self._id)
            raise StartOver from error
        print(f"resuming after round {last} of {rounds}")
        return last

    def _is_enough(self, stored: Mapping[Asked, Predictions]) -> bool:
        """Whether what is stored of a round is enough for the metrics that read all predicted label pictures."""
        return not self._keeps_every or any(EVERY in said.extras for said in stored.values())

    def _who(self) -> str:
        return self._session.who.partition(".")[0]


def _same(now: Mapping[Asked, Predictions], before: Mapping[Asked, Predictions]) -> bool:
    """Whether everything that was answered `before` is answered alike `now`."""
    return all(
        asked in now
        and now[asked].extras.keys() == said.extras.keys()
        and np.array_equal(now[asked].labels, said.labels)
        and all(np.array_equal(now[asked].extras[name], values) for name, values in said.extras.items())
        for asked, said in before.items()
    )
