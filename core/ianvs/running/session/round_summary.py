"""Collects the costs and messages of a round for its `RoundResult`."""

from dataclasses import replace

from ianvs.base.types import RoundResult
from ianvs.exam.scenarios.budget import check_budget
from ianvs.exam.scenarios.exam import Exam
from ianvs.running.loop import Model, PredictionsByTest
from ianvs.running.planning.case_request import CaseRequest
from ianvs.running.session import measure
from ianvs.running.session.case_learner import CaseLearner
from ianvs.running.session.examination import Examination
from ianvs.running.session.measure import NOTHING_SPENT, Spent, spent_so_far
from ianvs.running.session.save_load_check import save_load_difference
from ianvs.running.session.stored_rounds import StoredRounds
from ianvs.running.session.training_source import CaseTrainingSource

_MAX_MESSAGE_LENGTH = 500  # characters


class RoundSummarizer:
    """Implements `ianvs.running.loop.Summarizer` for one case.

    Args:
        began: `spent_so_far()` when the case's process started on it.
    """

    def __init__(
        self,
        request: CaseRequest,
        exam: Exam,
        learner: CaseLearner,
        examination: Examination,
        source: CaseTrainingSource,
        rounds: StoredRounds,
        began: Spent,
    ) -> None:
        self._request, self._learner, self._examination = request, learner, examination
        self._source, self._rounds, self._round_names = source, rounds, learner.facts.steps
        self._test_samples = sum(len(test.test) for test in exam.tests)
        self._last_total, self._last_saved = began, NOTHING_SPENT
        self._compiled_before = measure.compiled_graphs()

    def untrained(self) -> RoundResult:
        evaluation = self._examination.spent
        result = RoundResult(
            0,
            "untrained",
            eval_seconds=evaluation.seconds,
            eval_cpu_seconds=evaluation.cpu_seconds,
            cut_answers=evaluation.cut,
            measures=dict(self._learner.state.measures),
            changed=self._learner.changed,
        )
        return self._with_all_costs(result, self._learner.built, evaluation)

    def trained(
        self,
        step: int,
        model: Model,
        predictions: PredictionsByTest,
        *,
        adopted: bool,
        gate_scores: tuple[float, float] | None,
    ) -> RoundResult:
        """Summarize a trained and evaluated round.

        Raises:
            BudgetError: If the round used more than the exam allows.
        """
        result = self._result(step, adopted=adopted, gate_scores=gate_scores)
        if self._request.phases != ("all",):  # nothing else reaches the next round
            result = replace(result, memory_bytes=self._rounds.kept_bytes(model))
        compiled = measure.compiled_code(self._compiled_before)
        messages = (result.remark, self._examination.constant_predictions_warning(predictions, step), compiled)
        unsaved = self._unsaved(step, model) if step == len(self._round_names) else ""
        result = replace(result, remark="; ".join(filter(None, messages)), unsaved=unsaved)
        unlimited = self._source.bound or self._learner.facts.reference
        check_budget(None if unlimited else self._request.testenv.budget, result)
        return self._with_all_costs(result, NOTHING_SPENT, self._learner.spent + self._examination.spent)

    def evaluated(self, trained: RoundResult, predictions: PredictionsByTest) -> RoundResult:
        """Add what the evaluation of a round cost that was trained in an earlier process or phase."""
        spent = self._examination.spent
        broken_down = (
            self._examination.constant_predictions_warning(predictions, trained.index) if trained.index else ""
        )
        own_work = spent_so_far() - self._last_total - spent
        self._last_total = spent_so_far()
        return replace(
            trained,
            eval_seconds=spent.seconds,
            eval_cpu_seconds=spent.cpu_seconds,
            cut_answers=spent.cut,
            measure_seconds=(trained.measure_seconds or 0.0) + own_work.seconds,
            measure_cpu_seconds=(trained.measure_cpu_seconds or 0.0) + own_work.cpu_seconds,
            unscored=self._examination.skipped_evaluations,
            remark="; ".join(filter(None, (trained.remark, broken_down))),
        )

    def _with_all_costs(self, result: RoundResult, build: Spent, train_and_evaluate: Spent) -> RoundResult:
        """Add the costs of building, saving and our own work; with the others they sum to the time since last round."""
        total = spent_so_far()
        save = self._learner.saved - self._last_saved
        own_work = total - self._last_total - train_and_evaluate - build - save
        self._last_total, self._last_saved = total, self._learner.saved
        return replace(
            result,
            build_seconds=build.seconds,
            save_seconds=save.seconds,
            measure_seconds=own_work.seconds,
            build_cpu_seconds=build.cpu_seconds,
            save_cpu_seconds=save.cpu_seconds,
            measure_cpu_seconds=own_work.cpu_seconds,
        )

    def _result(self, step: int, *, adopted: bool, gate_scores: tuple[float, float] | None) -> RoundResult:
        learner, state, evaluation = self._learner, self._learner.state, self._examination.spent
        training, source, stream = learner.spent, self._source, self._source.keeper
        if stream is not None:  # predicting a chunk is not training, although it happens within train()
            predicting = Spent(stream.times.answering, stream.times.cpu)
            evaluation += predicting
            training = Spent(stream.times.learning, max(0.0, training.cpu_seconds - predicting.cpu_seconds))
        return RoundResult(
            index=step,
            name=self._round_names[step - 1],
            train_samples=source.served_samples,
            test_samples=self._test_samples,
            train_seconds=training.seconds,
            eval_seconds=evaluation.seconds,
            train_cpu_seconds=training.cpu_seconds,
            eval_cpu_seconds=evaluation.cpu_seconds,
            cut_answers=evaluation.cut,
            peak_memory_bytes=learner.memory.peak_bytes(),
            peak_gpu_bytes=state.peak_gpu_bytes,
            memory_samples=state.memory_samples,
            memory_bytes=state.memory_bytes,
            parameters=state.parameters,
            trainable_parameters=state.trainable_parameters,
            flops=state.flops,
            adopted=adopted,
            gate_scores=gate_scores,
            passes=state.passes,
            remark=self._rounds.redacted(state.remark)[:_MAX_MESSAGE_LENGTH],
            examined=source.evaluation_points(),
            measures=dict(state.measures),
            bound=source.bound,
            unscored=self._examination.skipped_evaluations,
            changed=learner.changed,
            revealed_samples=None if stream is None else stream.revealed_so_far,
            answer_seconds=0.0 if stream is None else stream.times.answering,
            feedback_seconds=0.0 if stream is None else stream.times.learning,
            stream_cpu_seconds=0.0 if stream is None else learner.spent.cpu_seconds,
            curves={name: tuple(points) for name, points in source.curves.items()},
        )

    def _unsaved(self, step: int, model: Model) -> str:
        """What `save` and `load` lose, in words; "" if they lose nothing, or no data were served."""
        if not self._source.served_samples:
            return ""
        message = save_load_difference(self._examination, self._learner, model, step)
        if message:
            print(f"can't be resumed: {message}")
            self._rounds.note_unsaved(message)
        return message
