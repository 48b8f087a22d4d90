"""Evaluates a learner: selects and orders the samples, and collects the predictions to store.

If the rules hide the task in testing, all test sets after a round are merged in a random order, and the predictions are
split by test set afterwards.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.types import PredictionKey, Predictions
from ianvs.config.spec import TestEnvSpec
from ianvs.exam.data.parts import Part, columns_of
from ianvs.exam.data_types import data_type
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.questions import EvaluationTask, TaskContext, evaluation_tasks_of
from ianvs.exam.scenarios.exam import Exam, TestSet
from ianvs.running.loop import Model
from ianvs.running.session.case_learner import CaseLearner, Query
from ianvs.running.session.feed import DataFeed
from ianvs.running.session.known_replies import Replies
from ianvs.running.session.measure import NOTHING_SPENT, Spent, spent_so_far
from ianvs.running.session.validate_predictions import select_rows

_MAX_PROBE_SAMPLES = 20_000  # limit of training samples of a task that fits a probe, such as the linear probe


@dataclass(frozen=True)
class _Call:
    """Samples that are predicted in one call. evaluation_task: None for labels.

    order: permutation of the samples of all parts; None: one part after the other.
    """

    parts: tuple[Part, ...]
    name: str
    context: Mapping[str, object] = field(default_factory=dict)
    order: NDArray[np.int64] | None = None
    adapted: TestSet | None = None  # adapted to its data before it predicts
    round: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None  # of a held-out part: number, seen, new
    evaluation_task: EvaluationTask | None = None


_TRY_SAMPLES = 16  # samples of a trial call

_CallPlan = list[tuple[tuple[int, ...], _Call]]  # (test sets, their call)


class Examination:
    """Evaluates one learner on the test sets of an exam.

    Attributes:
        spent: Cost of predictions in the current round; `CaseTrainingSource.begin` resets it.
        testenv: Has the evaluation tasks besides labels.
        replies: The source of replies; None where no learner has any.
    """

    def __init__(
        self,
        exam: Exam,
        testenv: TestEnvSpec,
        feed: DataFeed,
        learner: CaseLearner,
        seed: int,
        replies: Replies | None,
    ) -> None:
        self._exam, self._testenv, self._feed, self._learner = exam, testenv, feed, learner
        self._seed, self._replies = seed, replies
        self._kind = data_type(exam.dataset.kind, testenv.dataset.data_type)
        self._evaluation_tasks = evaluation_tasks_of(testenv)
        secret = hashlib.blake2b(digest_size=16)  # of the true labels: the learner can't know the order of samples
        y = exam.dataset.test.y
        for test in (batch.union.test for batch in exam.evaluation_batches):
            labels = np.asarray(y[test[: 4096 if y.ndim == 1 else _TRY_SAMPLES]])
            secret.update(repr(labels.tolist()).encode() if labels.dtype == object else labels.tobytes())
            secret.update(np.asarray(test).tobytes())
        self._secret = secret.hexdigest()
        self.spent: Spent = NOTHING_SPENT

    def predictions(
        self,
        model: Model,
        taught: int,
        samples: int | None = None,
    ) -> dict[PredictionKey, Predictions]:
        """Return the predictions for all evaluation batches after round `taught`.

        Within a stream, `samples` have arrived and a second object predicts. An exam with `test_sets` "future" leaves
        out the test sets of rounds that the model was taught.

        Args:
            model: The learner as it was saved.
            taught: Rounds taught.
            samples: Training samples so far, within a stream.
        """
        only_future = self._exam.rules.test_sets == "future"
        chosen = [j for j in range(len(self._exam.evaluation_batches)) if not (only_future and j < taught)]
        tests = {j: self._exam.evaluation_batches[j].union for j in chosen}
        parts = {j: (Part(self._exam.dataset.test, test.test, test.transform),) for j, test in tests.items()}
        labels = self._call_plan(parts, f"{taught} {samples}")
        steps: list[tuple[EvaluationTask | None, _CallPlan]] = [(None, labels)]
        if samples is None:
            steps += [(task, self._calls_of(task, labels, parts, taught)) for task in self._evaluation_tasks]
        calls = [call for _, arranged in steps for _, call in arranged]
        with self._learner.evaluating(model, apart=samples is not None):
            answers = iter(list(self._answers(calls, model, taught, when=f"{taught} {samples}")))
        results: dict[PredictionKey, Predictions] = {}
        for task, arranged in steps:
            for which, call in arranged:
                answer = next(answers)
                if task is None:
                    for j, part, rows in zip(which, call.parts, _rows(call), strict=True):
                        results[PredictionKey(j, samples)] = self._stored(part, answer, rows)
                    continue
                values = _split(call, answer.labels)
                for number, j in enumerate(which):
                    about = TaskContext(tests[j].classes, self._classes)
                    if task.fits:
                        fitted = call.parts[2 * number]
                        about = replace(about, fitted=next(values), labels=fitted.samples.y[fitted.positions])
                    extras = {**results[PredictionKey(j)].extras, **task.stored_answers(next(values), about)}
                    results[PredictionKey(j)] = replace(results[PredictionKey(j)], extras=extras)
        return results

    def held_out(self, model: Model, index: int) -> EvaluationRecord:
        """Predict the held-out part of round `index`; untimed."""
        dataset, rounds = self._exam.dataset, self._exam.rounds
        round_, positions = rounds[index - 1], self._feed.held_out(index)
        seen = tuple(sorted({c for r in rounds[:index] for c in r.classes}))
        facts = (index, seen, tuple(round_.classes))
        part = Part(dataset.train, positions, round_.transform)
        name = f"the held-out part of round {index}"
        call = _Call((part,), name, self._context(index - 1, round_.classes), round=facts)
        when = f"held out of {index}"
        with self._learner.evaluating(model):
            [answer] = self._answers([call], model, index, timed=False, when=when)
        predictions = self._stored(part, answer, np.arange(len(positions)))
        earlier = tuple(sorted({label for r in rounds[: index - 1] for label in r.classes}))
        unseen = None if self._exam.rules.unseen == "none" else np.zeros(len(positions), bool)
        columns: dict[str, object] = {name: values[positions] for name, values in dataset.train.columns.items()}
        columns |= self._testenv.dataset.columns_of_settings
        about = EvaluationRecord(
            dataset.classes, labels=round_.classes, earlier=earlier, unseen=unseen, columns=columns
        )
        every = self._kind.every_truth(dataset.train, positions)
        truth = self._kind.truth(dataset.train, positions) if every is None else every
        return self._kind.record(about, truth, predictions)

    def probe_predictions(self, model: Model, taught: int) -> list[Predictions]:
        """Predict a few training samples of each round so far, with the same random numbers each time; untimed."""
        calls = []
        for index in range(1, taught + 1):
            part = self._feed.probe_part(index)
            few = replace(part, positions=_sample_few(part))
            if len(few.positions):
                context = self._context(index - 1, self._exam.rounds[index - 1].classes)
                calls.append(_Call((few,), f"samples of round {index}", context))
        with self._learner.evaluating(model):
            return list(self._answers(calls, model, taught, timed=False, is_trial=True))

    def predict_ahead(self, parts: Sequence[Part], model: Model, taught: int) -> list[Any]:
        """Predict training samples with a second object, part after part, whether revealed or not; untimed."""
        calls = [_Call((part,), "questions of the stream") for part in parts]
        with self._learner.evaluating(model, apart=True):
            return [answer.labels for answer in self._answers(calls, model, taught, timed=False, is_trial=True)]

    def constant_predictions_warning(self, predictions: Mapping[PredictionKey, Predictions], taught: int) -> str:
        """Return a warning if all predictions are one class although round `taught` has several; else ""."""
        if not predictions or self._kind.name != "classification" or len(self._exam.rounds[taught - 1].classes) < 2:
            return ""
        batches = self._exam.evaluation_batches
        labels = [np.unique(p.labels) for key, p in predictions.items() if len(batches[key.test].union.classes) > 1]
        if not self._exam.rules.task_in_testing and labels:
            labels = [np.unique(np.concatenate(labels))]
        if not labels or any(len(answers) != 1 or answers[0] < 0 for answers in labels):
            return ""
        names = ", ".join(dict.fromkeys(f"'{self._exam.dataset.classes[int(answers[0])]}'" for answers in labels))
        return f"all answers after round {taught} are {names}: of a network this says that its training broke down"

    @property
    def _classes(self) -> int:
        return len(self._exam.dataset.classes)

    # --- evaluation tasks ---------------------------------------------------------------------------------------

    def _call_plan(
        self, parts: Mapping[int, tuple[Part, ...]], when: str, task: EvaluationTask | None = None
    ) -> _CallPlan:
        """Return (test sets, call): one call for all if the task is hidden, else one each. parts: by test set."""
        tests = [batch.union for batch in self._exam.evaluation_batches]
        adapted = {j: tests[j] for j in parts if tests[j].adapt is not None and task is None}
        alone = [j for j in parts if j in adapted or self._exam.rules.task_in_testing]
        mixed = tuple(j for j in parts if j not in alone)
        calls = []
        if mixed:
            chosen = tuple(part for j in mixed for part in parts[j])
            name = "the test sets" if task is None else f"the {task.method}"
            # From the case's seed and the true labels: a learner that knows the seed can't repeat it.
            text = f"{self._secret} {self._seed} {when}".encode()
            seed = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
            order = np.random.default_rng(seed).permutation(sum(len(part.positions) for part in chosen))
            calls.append((mixed, _Call(chosen, name, order=order, evaluation_task=task)))
        for j in alone:
            name = f"{'test set' if task is None else f'the {task.method} of'} {tests[j].name}"
            context = self._context(j, tests[j].classes)
            calls.append(((j,), _Call(parts[j], name, context, adapted=adapted.get(j), evaluation_task=task)))
        return calls

    def _calls_of(
        self, task: EvaluationTask, labels: _CallPlan, parts: Mapping[int, tuple[Part, ...]], taught: int
    ) -> _CallPlan:
        """Return calls of an evaluation task for the same samples in the same order, plus training samples if it fits a
        probe.

        [] for a learner that may lack the method, and does. Raises PluginError for a learner that would learn from
        shown labels.
        """
        if task.may_lack and self.skipped_evaluations:
            return []
        if task.shows_labels and self._learner.adapts:
            raise PluginError(
                f"{self._learner.state.caller.partition('.')[0]} learns while it is tested, so the replies can't be "
                f"shown to it. Take `{task.name}: true` out of the testenv, or the algorithm out of the job.",
                code="unfit-paradigm",
            )
        if not task.fits:
            return [(which, replace(call, evaluation_task=task)) for which, call in labels if call.adapted is None]
        fitted = self._probe_parts(task, list(parts))
        return self._call_plan({j: (part, *parts[j]) for j, part in fitted.items()}, f"{taught} probe", task)

    @property
    def skipped_evaluations(self) -> str:
        """Evaluations that are skipped because the learner may lack the method, and why."""
        return self._learner.state.skipped_evaluations

    def _probe_parts(self, task: EvaluationTask, batches: Sequence[int]) -> dict[int, Part]:
        """Return, by test set j, the training samples that are predicted with it."""
        if len(self._exam.evaluation_batches) != len(self._exam.rounds) or not self._kind.probes:
            raise PluginError(f"`{task.name}: true` needs one test set of classes for each round.", code="unfit-exam")
        parts = {j: self._feed.probe_part(j + 1) for j in batches}
        return {j: replace(part, positions=part.positions[:_MAX_PROBE_SAMPLES]) for j, part in parts.items()}

    def _context(self, j: int, classes: tuple[int, ...]) -> dict[str, object]:
        """Return the context of test set j: the task's identity and its classes, if the rules show them."""
        rules = self._exam.rules
        if not rules.task_in_testing:
            return {}
        return {"task": j, "task_classes": classes} if rules.output_space == "task" else {"task": j}

    # --- predictions --------------------------------------------------------------------------------------------

    def _answers(
        self,
        calls: Sequence[_Call],
        model: Model,
        taught: int,
        *,
        timed: bool = True,
        is_trial: bool = False,
        when: str = "",
    ) -> Iterator[Predictions]:
        """Yield validated predictions, in the order of the calls.

        timed: add their time, and the number of shortened ones, to `spent`. is_trial: the result is not used. when:
        names the evaluation, for cached replies.
        """
        for call in calls:
            shows = call.evaluation_task is not None and call.evaluation_task.shows_labels
            adapted, labels = call.adapted, call.evaluation_task is None
            pieces = list[Predictions]()
            with ExitStack() as stack:
                by = None
                if (
                    when and labels and self._replies is not None
                ):  # later calls show labels, which must not get into cached replies
                    by = stack.enter_context(self._replies.use_for(when))
                query = Query(
                    x=columns_of(call.parts, ("x",), call.order)["x"],
                    name=call.name,
                    label_shape=call.parts[0].samples.y.shape[1:],
                    context=call.context,
                    replies=columns_of(call.parts, ("y",), call.order)["y"] if shows else None,
                    round=call.round,
                    evaluation_task=None if call.evaluation_task is None else call.evaluation_task.name,
                    adaptation=None
                    if adapted is None
                    else (self._feed.adaptation(adapted), adapted.name, adapted.classes),
                    taught=taught > 0,
                    is_trial=is_trial,
                    replies_by=by,
                )
                answers = self._learner.answers(query, model)
                while True:
                    began = spent_so_far()
                    if (piece := next(answers, None)) is None:
                        break
                    self.spent += spent_so_far() - began if timed else NOTHING_SPENT
                    if labels:
                        answered, cut = self._kind.shortened(piece.labels)
                        piece = replace(piece, labels=answered if is_trial else self._kind.packed(answered))
                        self.spent += Spent(cut=cut if timed else 0)
                    pieces.append(piece)
            yield pieces[0] if len(pieces) == 1 else _concatenated(pieces)

    def _stored(self, part: Part, answer: Predictions, rows: NDArray[np.int64]) -> Predictions:
        size = self._kind.batch_limit or max(1, len(rows))

        def pieces() -> Iterator[tuple[Part, Any]]:
            for start in range(0, max(1, len(rows)), size):
                labels = select_rows(answer.labels, rows[start : start + size])
                yield replace(part, positions=part.positions[start : start + size]), labels

        stored = self._kind.stored_predictions(pieces(), self._classes)
        ours = {extra for task in self._evaluation_tasks for extra in task.extras}
        if taken := answer.extras.keys() & {*stored.extras, *self._kind.own_extras, *ours}:
            raise PluginError(f"predict() returned an extra '{min(taken)}', a name of ours.", code="invalid-result")
        return replace(stored, extras={**stored.extras, **{name: v[rows] for name, v in answer.extras.items()}})


def _concatenated(pieces: Sequence[Predictions]) -> Predictions:
    """Concatenate the predictions of an evaluation task. Raises PluginError if some have other extras."""
    if any(piece.extras.keys() != pieces[0].extras.keys() for piece in pieces):
        raise PluginError(
            "predict() returned extras with some of its answers, and not with others", code="invalid-result"
        )
    extras = {name: np.concatenate([piece.extras[name] for piece in pieces]) for name in pieces[0].extras}
    return Predictions([label for piece in pieces for label in piece.labels], extras)


def _sample_few(part: Part) -> NDArray[np.int64]:
    """Return positions of some samples: the first of each class, or two if predictions are slow."""
    y, count = part.samples.y, len(part.positions)
    if y.ndim > 1 or y.dtype == object:
        return part.positions[:2]
    firsts = np.unique(y[part.positions], return_index=True)[1][:_TRY_SAMPLES]
    spread = np.linspace(0, max(0, count - 1), min(_TRY_SAMPLES, count)).astype(np.int64)
    return np.asarray(part.positions[np.unique(np.concatenate([firsts, spread]))])


def _rows(call: _Call) -> Iterator[NDArray[np.int64]]:
    """Yield, for each part, the rows of its samples in the call."""
    ends = np.cumsum([len(part.positions) for part in call.parts])
    where = np.arange(ends[-1]) if call.order is None else np.argsort(call.order)
    for part, end in zip(call.parts, ends, strict=True):
        yield where[end - len(part.positions) : end]


def _split(call: _Call, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for rows in _rows(call):
        yield values[rows]
