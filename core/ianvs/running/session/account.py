"""What is stored of a round beside its answers and its model: what it cost, and what is to be said of it."""

import os
from dataclasses import replace

from ianvs.base.secrets import hide_secrets
from ianvs.base.types import RoundResult
from ianvs.exam.scenarios.budget import check_budget
from ianvs.exam.scenarios.exam import Exam
from ianvs.processes.proc import children
from ianvs.running.loop import Answers, Model
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session import measure
from ianvs.running.session.examination import Examination
from ianvs.running.session.learner import LocalLearner
from ianvs.running.session.measure import NOTHING_SPENT, Spent, spent_so_far
from ianvs.running.session.saving import lost_by_saving
from ianvs.running.session.stored_rounds import StoredRounds
from ianvs.running.session.training_source import TrainingSource

_LONGEST_REMARK = 500  # characters


class CaseAccount:
    """Of one case (ianvs.running.loop.Account). began: `spent_so_far` when its process began with it."""

    def __init__(
        self,
        request: CaseRequest,
        exam: Exam,
        learner: LocalLearner,
        examination: Examination,
        source: TrainingSource,
        rounds: StoredRounds,
        began: Spent,
    ) -> None:
        self._request, self._learner, self._examination = request, learner, examination
        self._source, self._rounds, self._names = source, rounds, learner.ready.steps
        self._test_samples = sum(len(test.test) for test in exam.tests)
        self._since = began
        self._saved = NOTHING_SPENT

    def untrained(self) -> RoundResult:
        asked = self._examination.spent
        untrained = RoundResult(
            0,
            "untrained",
            eval_seconds=asked.seconds,
            eval_cpu_seconds=asked.cpu_seconds,
            cut_answers=asked.cut,
            measures=dict(self._learner.state.measures),
            changed=self._shown(self._learner.changed),
        )
        return self._in_parts(untrained, self._learner.built, asked)

    def of_round(
        self, step: int, model: Model, answers: Answers, *, adopted: bool, scores: tuple[float, float] | None
    ) -> RoundResult:
        """Raises BudgetError for more than the exam allows."""
        result = self._result(step, adopted=adopted, scores=scores)
        remarks = (result.remark, self._examination.broken_down(answers, step), measure.compiled_code())
        unsaved = self._unsaved(step, model) if step == len(self._names) else ""
        result = replace(result, remark="; ".join(filter(None, remarks)), unsaved=unsaved)
        free = self._source.bound or self._learner.ready.reference
        check_budget(None if free else self._request.testenv.budget, result)
        return self._in_parts(result, NOTHING_SPENT, self._learner.spent + self._examination.spent)

    def _in_parts(self, result: RoundResult, built: Spent, trained_and_asked: Spent) -> RoundResult:
        """With what of the time since the round before was neither training nor answers: they add up to all of it."""
        now, saved = spent_so_far(), self._learner.saved - self._saved
        measuring = now - self._since - trained_and_asked - built - saved
        self._since, self._saved = now, self._learner.saved
        return replace(
            result,
            build_seconds=built.seconds,
            save_seconds=saved.seconds,
            measure_seconds=measuring.seconds,
            build_cpu_seconds=built.cpu_seconds,
            save_cpu_seconds=saved.cpu_seconds,
            measure_cpu_seconds=measuring.cpu_seconds,
        )

    def _result(self, step: int, *, adopted: bool, scores: tuple[float, float] | None) -> RoundResult:
        learner, state, asked = self._learner, self._learner.state, self._examination.spent
        trained, source, stream = learner.spent, self._source, self._source.keeper
        curves = {name: tuple(points) for name, points in source.curves.items()}
        if stream is not None:  # the time in which it answers is none of its training
            answering = Spent(stream.times.answering, stream.times.cpu)
            asked += answering
            trained = Spent(stream.times.learning, max(0.0, trained.cpu_seconds - answering.cpu_seconds))
        return RoundResult(
            index=step,
            name=self._names[step - 1],
            train_samples=source.handed_over,
            test_samples=self._test_samples,
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
            remark=self._shown(state.remark)[:_LONGEST_REMARK],
            examined=source.all_examined(),
            measures=dict(state.measures),
            bound=source.bound,
            unscored=self._shown(self._examination.unscored),
            changed=self._shown(learner.changed),
            told=None if stream is None else stream.told_so_far,
            answer_seconds=0.0 if stream is None else stream.times.answering,
            feedback_seconds=0.0 if stream is None else stream.times.learning,
            stream_cpu_seconds=0.0 if stream is None else learner.spent.cpu_seconds,
            curves=curves,
        )

    def _peak_bytes(self) -> int:
        """Of this process, and of those that its plugins live in."""
        others = children(os.getpid()) if self._request.algorithm.python is not None else ()
        return measure.peak_host_bytes() + sum(map(measure.peak_host_bytes, others))

    def _unsaved(self, step: int, model: Model) -> str:
        """What is lost when the case goes on from what was saved; "" where nothing was taught."""
        if not self._source.handed_over:
            return ""
        said = self._shown(lost_by_saving(self._examination, self._learner, model, step))
        if said:
            print(f"can't be resumed: {said}")
            self._rounds.note_unsaved(said)
        return said

    def _shown(self, text: str) -> str:
        return hide_secrets(text, known=self._request.secrets)
