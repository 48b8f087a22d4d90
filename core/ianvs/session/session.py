"""One learner in one exam, in this process: training, gate, evaluation, and storing each round as it is done."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.engines.engine import Reporter
from ianvs.errors import ExamRuleError, PluginError
from ianvs.metrics.registry import resolve
from ianvs.planning.case_request import CaseRequest
from ianvs.scenarios.exam import Exam
from ianvs.scenarios.views import TrainView
from ianvs.session import measure
from ianvs.session.budget import check_budget
from ianvs.session.context import ContextBuilder
from ianvs.session.evaluation import ALL, Evaluation
from ianvs.session.feed import DataFeed
from ianvs.session.gate import Gate
from ianvs.session.learner_calls import LearnerCalls
from ianvs.session.lineage import find_earlier, lineage_of
from ianvs.session.training import Trained, Training
from ianvs.store import CaseStore, ExamStore
from ianvs.types import RoundResult

__all__ = ["CaseSession", "Interrupted", "StartOver"]


class Interrupted(Exception):  # noqa: N818 - not an error: a wish that was granted
    """The case was asked to end; what is complete is stored."""


class CaseSession:
    """Implements ianvs.paradigms.Session on files. The caller holds the case's lock."""

    def __init__(
        self,
        request: CaseRequest,
        exam: Exam,
        learner: LearnerCalls,
        device: str,
        report: Reporter,
        *,
        may_take_over: bool = True,
    ) -> None:
        record = ExamStore(request.workspace).record(request.exam_id)
        self._lineage = lineage_of(request, record) if record and exam.stream is None else ()
        self._may_take_over = may_take_over
        self._request, self._exam = request, exam
        spec = request.testenv
        self._budget = None if request.case.role or learner.sees_past_rounds else spec.budget
        self._gate = Gate(spec.gate) if spec.gate and not request.case.role else None
        self._keeps_pictures = exam.dataset.kind == "segmentation" and any(
            resolve(metric).pictures for metric, _ in request.scores if metric.url is not None
        )
        self._feed = DataFeed(exam, request.train_ratio, request.case.seed, exam.rules.passes)
        self._files = CaseStore(request.workspace).files(request.case.id)
        self._contexts = ContextBuilder(request, exam, self._feed, device, self._files, report)
        self._training = Training(request, self._feed, self._contexts, report)
        self._use(learner)
        self._predicts_untrained = True
        self._report = report
        self._store = CaseStore(request.workspace)
        self._id = request.case.id
        self.rounds = len(exam.rounds)
        self.completed = self._resume()
        self._files.mkdir(parents=True, exist_ok=True)

    def _use(self, learner: LearnerCalls) -> None:
        self._learner = learner
        probe = self._request.testenv.linear_probe
        self._evaluation = Evaluation(
            self._exam, self._feed, learner, self._training.seed_for, probe=probe, pictures=self._keeps_pictures
        )

    def _context(self, index: int) -> dict[str, Any]:
        if self._request.case.role and index:
            return self._contexts.by_reference(index, self._learner)
        return self._contexts.after_round(index, self._learner)

    # --- steps --------------------------------------------------------------------------------------------------

    def examine_untrained(self) -> None:
        """Row 0. A plugin that can't predict before it was trained has an empty one."""
        try:
            predictions, spent = self._evaluate(0)
        except ExamRuleError:
            raise
        except Exception as error:
            print(f"{self._learner.name} can't predict before training ({type(error).__name__}: {error});")
            print("what needs the untrained model (FWT, Ianvs's BWT and FWT) stays empty.")
            predictions, spent = {}, measure.NOTHING_SPENT
            self._predicts_untrained = False
        untrained = RoundResult(0, "untrained", eval_seconds=spent.seconds, eval_cpu_seconds=spent.cpu_seconds)
        self._keep(untrained, predictions, trained=False)
        self._take_over_earlier_rounds()

    def run_round(self, index: int) -> None:
        if self._report.stop_requested():
            raise Interrupted
        self._say(index, "train")
        valid = self._feed.valid(index)
        gate_before = self._gate_score(index, valid) if index > 1 or self._predicts_untrained else None
        trained = self._train(index, valid)
        adopted, scores = self._pass_gate(index, valid, gate_before)
        if valid is not None:
            valid.close()
        self._say(index, "evaluate")
        predictions, asked = self._evaluate(index)
        asked += trained.eval_spent
        samples, size = measure.memory_size(self._learner.plugin)
        result = RoundResult(
            index=index,
            name=self._exam.rounds[index - 1].name,
            train_samples=trained.samples,
            test_samples=sum(len(test.test) for test in self._exam.tests),
            train_seconds=trained.spent.seconds,
            eval_seconds=asked.seconds,
            train_cpu_seconds=trained.spent.cpu_seconds,
            eval_cpu_seconds=asked.cpu_seconds,
            peak_memory_bytes=measure.peak_host_bytes(),
            peak_gpu_bytes=measure.peak_gpu_bytes(),
            memory_samples=samples,
            memory_bytes=size,
            adopted=adopted,
            gate_scores=scores,
            passes=trained.passes,
            remark=self._learner.remark,
            examined=(*trained.examined, (self._feed.arrived(index), index, index)),
        )
        check_budget(self._budget, result)
        self._keep(result, {**trained.predictions, **predictions})
        if index == self.rounds and self._lineage:
            self._store.own(self._lineage[-1], self._id)

    def _say(self, index: int, doing: str) -> None:
        """To the supervisor, and to whoever asks `ianvs status`."""
        now = {"round": index, "rounds": self.rounds, "doing": doing}
        self._report(now)
        self._store.note_running(self._id, {**now, "since": time.time(), "pid": os.getpid()})

    def _train(self, index: int, valid: TrainView | None) -> Trained:
        if self._request.case.role:
            self._use(self._training.reference_learner(self._learner))
            return self._training.reference(self._learner, index)
        if self._feed.streams and not self._learner.sees_past_rounds:
            return self._training.on_chunks(self._learner, self._evaluation, index)
        return self._training.on_round(self._learner, index, valid)

    # --- evaluation ---------------------------------------------------------------------------------------------

    def _evaluate(self, index: int) -> tuple[dict[str, NDArray[Any]], measure.Spent]:
        """(what to keep of the answers to all test sets, what it took) of the present model, after round `index`."""
        return self._evaluation.predictions(index, self._context(index))

    def _gate_score(self, index: int, valid: TrainView | None) -> float | None:
        """Score of the present model on the held-out part of round `index`; None without a gate."""
        if self._gate is None:
            return None
        positions = self._feed.held_out(index)
        seen = None
        if valid is not None:
            pictures = self._gate.pictures and self._exam.dataset.kind == "segmentation"
            seen = self._evaluation.held_out(index, positions, self._context(index), pictures)
        return self._gate.score(seen)

    def _pass_gate(
        self, index: int, valid: TrainView | None, before: float | None
    ) -> tuple[bool, tuple[float, float] | None]:
        """Whether the new model stays; if not, the model of the round before is back in place."""
        if self._gate is None:
            return True, None
        if before is None and index == 1 and not self._predicts_untrained:
            return True, None  # there is no model yet that could be kept instead

        def undo() -> None:
            previous = self._store.model(self._id, index - 1)
            if previous is None:
                raise PluginError(
                    f"model_eval: the model of round {index - 1} is gone, so round {index} can't be undone."
                )
            self._learner.load(previous)

        return self._gate.decide(index, before, self._gate_score(index, valid), undo)

    # --- storing ------------------------------------------------------------------------------------------------

    def _keep(self, result: RoundResult, predictions: dict[str, NDArray[Any]], *, trained: bool = True) -> None:
        with self._store.new_round(self._id, result.index) as folder:
            at = ""
            try:
                at = self._learner.save(folder.model / "model")
            except Exception:
                if trained:
                    raise
                # A plugin that has nothing to save before it was trained.
            size = measure.folder_bytes(folder.model)
            folder.fill(replace(result, model_bytes=size or None), predictions, at)
        self.completed = result.index

    def _keep_taken(self, result: RoundResult, predictions: dict[str, NDArray[Any]]) -> None:
        """A round whose own model is gone: the learner is that of a later one, from which nothing may continue here."""
        with self._store.new_round(self._id, result.index) as folder:
            folder.fill(result, predictions, "")

    def _take_over_earlier_rounds(self) -> None:
        """Begin where a case with fewer rounds has ended, if its beginning is ours.

        Test sets that only our exam has are predicted by its last model; for its earlier rounds they stay empty.
        """
        earlier = find_earlier(self._request, self._lineage) if self._may_take_over else None
        if earlier is None or not self._has_pictures(earlier.predictions(earlier.last)):
            return
        path = self._store.model(earlier.case_id, earlier.last)
        assert path is not None
        try:
            self._learner.load(path)
            now, _ = self._evaluate(earlier.last)
        except Exception as error:
            print(f"can't continue from case {earlier.case_id} ({type(error).__name__}: {error}).")
            raise StartOver from error
        before = earlier.predictions(earlier.last)
        if not all(name in now and np.array_equal(now[name], kept) for name, kept in before.items()):
            print(f"can't continue from case {earlier.case_id}: load() does not bring back its predictions.")
            raise StartOver
        print(f"continuing from case {earlier.case_id} after round {earlier.last}")
        for index in range(1, earlier.last):
            self._keep_taken(earlier.result(index), earlier.predictions(index))
        self._keep(earlier.result(earlier.last), now)

    def _resume(self) -> int:
        """Bring back the model of the last complete round, and make sure that it is the same model.

        A plugin whose load() does not bring back what was saved would end with other results than an undisturbed run;
        it is found out by its predictions, and the case starts over.
        """
        done = self._store.complete_rounds(self._id)
        if len(done) <= 1:
            self._store.reset(self._id)
            return -1
        last = done[-1].index
        if not self._has_pictures(self._store.predictions(self._id, last)):
            print(
                "a metric reads all predicted label pictures, and only counts are stored; starting over from round 1."
            )
            self._store.reset(self._id)
            return -1
        if last == self.rounds:
            return last
        try:
            path = self._store.model(self._id, last)
            if path is None:
                raise PluginError("no model is stored")
            self._learner.load(path)
            now, _ = self._evaluate(last)
            before = self._store.predictions(self._id, last)
            before = {name: kept for name, kept in before.items() if "@" not in name}  # not those within a stream
            same = now.keys() == before.keys() and all(np.array_equal(now[j], before[j]) for j in now)
            if not same:
                raise PluginError("load() does not bring back the predictions of before save()")
        except Exception as error:
            print(f"can't resume after round {last} ({type(error).__name__}: {error}); starting over from round 1.")
            self._store.reset(self._id)
            raise StartOver from error
        print(f"resuming after round {last} of {self.rounds}")
        return last

    def _has_pictures(self, stored: Mapping[str, Any]) -> bool:
        """Whether what is stored of a round is enough for the metrics that read all predicted label pictures."""
        return not self._keeps_pictures or any(name.startswith(f"{ALL}_") for name in stored)


class StartOver(Exception):  # noqa: N818 - a request to build a fresh learner
    """The stored rounds can't be continued and were dropped; the learner may be half loaded."""
