"""One learner sitting one exam in this process: training, gate, evaluation, and storing each round as it is done."""

from __future__ import annotations

import operator
import os
import random
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import ExamRuleError, PluginError
from core.execution import measure
from core.execution.chain import chain_of, find_earlier
from core.execution.engine import Reporter
from core.execution.evaluation import Evaluation
from core.execution.learner import LearnerCalls
from core.execution.request import CaseRequest
from core.execution.scoring import score_of
from core.metrics.registry import resolve
from core.scenarios import hold_out
from core.scenarios.exam import Exam
from core.scenarios.handed import HandedTrain
from core.seeding import generator, stream_seed
from core.store import CaseStore, ExamStore
from core.types import RoundResult

__all__ = ["CaseSitting", "Interrupted", "seed_everything"]

_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq}


class Interrupted(Exception):  # noqa: N818 - not an error: a wish that was granted
    """The case was asked to end; what is complete is stored."""


class CaseSitting:
    """Implements core.paradigms.Sitting on files. The caller holds the case's lock."""

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
        record = ExamStore(request.exam.workspace).record(request.exam.exam_id)
        self._chain = chain_of(request, record) if record else ()
        self._may_take_over = may_take_over
        self._request, self._exam, self._learner, self._device = request, exam, learner, device
        self._evaluation = Evaluation(exam, learner)
        self._predicts_untrained = True
        self._report = report
        self._store = CaseStore(request.exam.workspace)
        self._id = request.case.id
        self._parts = [hold_out(r, exam.dataset, request.train_ratio, request.case.seed) for r in exam.rounds]
        self.rounds = len(exam.rounds)
        self._files = self._store.files(self._id)
        self.completed = self._resume()
        self._files.mkdir(parents=True, exist_ok=True)

    # --- steps --------------------------------------------------------------------------------------------------

    def examine_untrained(self) -> None:
        """Row 0. A plugin that can't predict before it was trained has an empty one."""
        try:
            predictions, seconds = self._evaluate(0)
        except ExamRuleError:
            raise
        except Exception as error:
            print(f"{self._learner.name} can't predict before training ({type(error).__name__}: {error});")
            print("what needs the untrained model (FWT, Ianvs's BWT and FWT) stays empty.")
            predictions, seconds = {}, 0.0
            self._predicts_untrained = False
        self._keep(RoundResult(index=0, name="untrained", eval_seconds=seconds), predictions, trained=False)
        self._take_over_earlier_rounds()

    def sit_round(self, index: int) -> None:
        if self._report.stop_requested():
            raise Interrupted
        round_ = self._exam.rounds[index - 1]
        self._say(index, "train")
        leases, valid = self._train_data(index), self._valid_data(index)
        context = self._context(index)
        if self._learner.sees_past_rounds:
            context["train_rounds"] = tuple(leases)
        gate_before = self._gate_score(index, valid) if index > 1 or self._predicts_untrained else None
        seed_everything(stream_seed(self._request.case.seed, index, "global"))
        with measure.stopwatch() as training:
            self._learner.train(leases[-1], valid, context)
        train_samples = sum(map(len, leases))
        for lease in leases:
            lease.close()
        adopted, scores = self._pass_gate(index, valid, gate_before)
        if valid is not None:
            valid.close()
        self._say(index, "evaluate")
        predictions, eval_seconds = self._evaluate(index)
        samples, size = measure.memory_size(self._learner.plugin)
        result = RoundResult(
            index=index,
            name=round_.name,
            train_samples=train_samples,
            test_samples=sum(len(test.test) for test in self._exam.tests),
            train_seconds=training.seconds,
            eval_seconds=eval_seconds,
            peak_memory_bytes=measure.peak_host_bytes(),
            peak_gpu_bytes=measure.peak_gpu_bytes(),
            memory_samples=samples,
            memory_bytes=size,
            adopted=adopted,
            gate_scores=scores,
        )
        self._keep(result, predictions)
        if index == self.rounds and self._chain:
            self._store.own(self._chain[-1], self._id)

    def _say(self, index: int, doing: str) -> None:
        """To the supervisor, and to whoever asks `ianvs status`."""
        now = {"round": index, "rounds": self.rounds, "doing": doing}
        self._report(now)
        self._store.note_running(self._id, {**now, "since": time.time(), "pid": os.getpid()})

    # --- data ---------------------------------------------------------------------------------------------------

    def _train_data(self, index: int) -> list[HandedTrain]:
        """Leases on the rounds that the learner may see in round `index`; its own round is the last."""
        first = 1 if self._learner.sees_past_rounds else index
        return [self._handed(k, self._parts[k - 1][0], f"round {k}") for k in range(first, index + 1)]

    def _valid_data(self, index: int) -> HandedTrain | None:
        held_out = self._parts[index - 1][1]
        return self._handed(index, held_out, f"round {index}") if len(held_out) else None

    def _handed(self, index: int, positions: NDArray[np.int64], name: str) -> HandedTrain:
        transform = self._exam.rounds[index - 1].transform
        return HandedTrain(self._exam.dataset.train, positions, transform=transform, name=name)

    def _context(self, index: int) -> dict[str, Any]:
        """What plugins may name, as far as the exam's rules show it."""
        rules, rounds, case = self._exam.rules, self._exam.rounds, self._request.case
        classes = self._exam.dataset.classes
        seen = sorted({c for round_ in rounds[:index] for c in round_.classes})
        context: dict[str, Any] = {
            "classes": classes,
            "classes_seen": tuple(seen),
            "new_classes": tuple(rounds[index - 1].classes) if index else (),
            "num_classes": len(classes),
            "device": self._device,
            "seed": case.seed,
            "round": index,
            "generator": generator(case.seed, index, "plugin"),
            "folder": self._files,
            "progress": lambda fraction: self._report({"round": index, "rounds": self.rounds, "fraction": fraction}),
        }
        if rules.task_in_training and index:
            context["task"] = index - 1
        return context

    # --- evaluation ---------------------------------------------------------------------------------------------

    def _evaluate(self, index: int) -> tuple[dict[str, NDArray[Any]], float]:
        """(what to keep of the answers to all test sets, seconds) of the present model, after round `index`."""
        return self._evaluation.answers(self._context(index))

    def _gate_score(self, index: int, valid: HandedTrain | None) -> float | None:
        """Score of the present model on the held-out part of round `index`; None without a gate."""
        gate = self._request.exam.exam.gate
        if gate is None:
            return None
        if valid is None:
            raise PluginError("model_eval needs a held-out part of each round: set train_ratio below 1.")
        seen = self._evaluation.held_out(index, self._parts[index - 1][1], self._context(index))
        return score_of(gate.metric, resolve(gate.metric), seen)[0]

    def _pass_gate(
        self, index: int, valid: HandedTrain | None, before: float | None
    ) -> tuple[bool, tuple[float, float] | None]:
        """Whether the new model stays; if not, the model of the round before is back in place."""
        gate = self._request.exam.exam.gate
        if gate is None:
            return True, None
        if before is None and index == 1 and not self._predicts_untrained:
            return True, None  # there is no model yet that could be kept instead
        after = self._gate_score(index, valid)
        if before is None or after is None:
            raise PluginError(f"model_eval: metric '{gate.metric.name}' gave no number on round {index}.")
        value = after - before if gate.mode == "relative" else after
        if _COMPARE[gate.operator](value, gate.threshold):
            return True, (before, after)
        previous = self._store.model(self._id, index - 1)
        if previous is None:
            raise PluginError(f"model_eval: the model of round {index - 1} is gone, so round {index} can't be undone.")
        self._learner.load(previous)
        return False, (before, after)

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

    def _take_over_earlier_rounds(self) -> None:
        """Begin where a case with fewer rounds has ended, if its beginning is ours.

        Test sets that only our exam has are predicted by its last model; for its earlier rounds they stay empty.
        """
        earlier = find_earlier(self._request, self._chain) if self._may_take_over else None
        if earlier is None:
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
        if not all(np.array_equal(now[j], before[j]) for j in before):
            print(f"can't continue from case {earlier.case_id}: load() does not bring back its predictions.")
            raise StartOver
        print(f"continuing from case {earlier.case_id} after round {earlier.last}")
        for index in range(1, earlier.last + 1):
            predictions = now if index == earlier.last else earlier.predictions(index)
            self._keep(earlier.result(index), predictions, trained=index == earlier.last)

    def _resume(self) -> int:
        """Bring back the model of the last complete round, and make sure that it is the same model.

        A plugin whose load() does not bring back what was saved would end with other results than an undisturbed run;
        it is found out by its predictions, and the case starts over.
        """
        done = self._store.complete_rounds(self._id)
        if len(done) <= 1:
            self._store.forget(self._id)
            return -1
        last = done[-1].index
        if last == self.rounds:
            return last
        try:
            path = self._store.model(self._id, last)
            if path is None:
                raise PluginError("no model is stored")
            self._learner.load(path)
            now, _ = self._evaluate(last)
            before = self._store.predictions(self._id, last)
            same = now.keys() == before.keys() and all(np.array_equal(now[j], before[j]) for j in now)
            if not same:
                raise PluginError("load() does not bring back the predictions of before save()")
        except Exception as error:
            print(f"can't resume after round {last} ({type(error).__name__}: {error}); starting over from round 1.")
            self._store.forget(self._id)
            raise StartOver from error
        print(f"resuming after round {last} of {self.rounds}")
        return last


class StartOver(Exception):  # noqa: N818 - a request to build a fresh learner
    """The stored rounds can't be continued and were dropped; the learner may be half loaded."""


def seed_everything(seed: int) -> None:
    """Seed the global generators, at the start of every round, so that a resumed case draws the same numbers."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # plugins may use the legacy generator
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)
