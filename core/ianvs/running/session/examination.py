"""The examination of a learner: what it is asked, in which order, and what is kept of its answers.

Where the rules hide the task in testing, everything that is asked after a round is one set of samples in an order that
tells nothing; the answers are put back to their test sets here.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError
from ianvs.base.types import Asked, Predictions
from ianvs.config.spec import TestEnvSpec
from ianvs.exam.data.parts import Part, columns_of
from ianvs.exam.data_types import data_type
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.questions import About, Question, questions_of
from ianvs.exam.scenarios.exam import Exam, TestSet
from ianvs.running.loop import Model
from ianvs.running.session.case_learner import Asking, CaseLearner
from ianvs.running.session.checked_answers import picked
from ianvs.running.session.feed import DataFeed
from ianvs.running.session.known_replies import Replies
from ianvs.running.session.measure import NOTHING_SPENT, Spent, spent_so_far

_PROBED = 20_000  # training samples that are asked too, of a question that fits; the first where there are more


@dataclass(frozen=True)
class _Call:
    """Samples that are asked in one call. question: what about them; None: their labels.

    order: in which they are, out of all parts; None: one after the other.
    """

    parts: tuple[Part, ...]
    name: str
    context: Mapping[str, object] = field(default_factory=dict)
    order: NDArray[np.int64] | None = None
    adapted: TestSet | None = None  # what a copy learns before it answers
    round: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None  # of a held-out part: number, seen, new
    question: Question | None = None


_MANY = 16  # samples of a try

_Arranged = list[tuple[tuple[int, ...], _Call]]  # (test sets, what is asked of them)


class Examination:
    """Of one learner, before the test sets of an exam. spent: on answers, since it was last set.

    testenv: what is asked beside labels. replies: where they come from.
    """

    def __init__(
        self,
        exam: Exam,
        testenv: TestEnvSpec,
        feed: DataFeed,
        learner: CaseLearner,
        seed: int,
        replies: Replies,
    ) -> None:
        self._exam, self._testenv, self._feed, self._learner = exam, testenv, feed, learner
        self._seed, self._replies = seed, replies
        self._kind = data_type(exam.dataset.kind, testenv.dataset.data_type)
        self._questions = questions_of(testenv)
        self._secret = _secret(exam)
        self.spent: Spent = NOTHING_SPENT

    def begin(self) -> None:
        """Nothing was asked in this round."""
        self.spent, self._learner.changed = NOTHING_SPENT, ""

    def predictions(
        self,
        model: Model,
        taught: int,
        samples: int | None = None,
    ) -> dict[Asked, Predictions]:
        """Answers to all sheets of the exam after round `taught`; within a stream, after so many `samples`, a second
        object's. model: what the learner is now, as it was saved.

        An exam that asks ahead leaves out the test sets of rounds that the model was taught.
        """
        only_future = self._exam.rules.test_sets == "future"
        chosen = [j for j in range(len(self._exam.sheets)) if not (only_future and j < taught)]
        tests = {j: self._exam.sheets[j].union for j in chosen}
        parts = {j: (Part(self._exam.dataset.test, test.test, test.transform),) for j, test in tests.items()}
        labels = self._arranged(parts, f"{taught} {samples}")
        steps: list[tuple[Question | None, _Arranged]] = [(None, labels)]
        if samples is None:
            steps += [(question, self._calls_of(question, labels, parts, taught)) for question in self._questions]
        calls = [call for _, arranged in steps for _, call in arranged]
        with self._learner.examined(model, apart=samples is not None):
            answers = iter(list(self._answers(calls, model, taught, when=f"{taught} {samples}")))
        results: dict[Asked, Predictions] = {}
        for question, arranged in steps:
            for which, call in arranged:
                answer = next(answers)
                if question is None:
                    for j, part, rows in zip(which, call.parts, _rows(call), strict=True):
                        results[Asked(j, samples)] = self._stored(part, answer, rows)
                    continue
                values = _split(call, answer.labels)
                for number, j in enumerate(which):
                    about = About(tests[j].classes, self._classes)
                    if question.fits:
                        fitted = call.parts[2 * number]
                        about = replace(about, fitted=next(values), labels=fitted.samples.y[fitted.positions])
                    extras = {**results[Asked(j)].extras, **question.stored_answers(next(values), about)}
                    results[Asked(j)] = replace(results[Asked(j)], extras=extras)
        return results

    def held_out(self, model: Model, index: int) -> EvaluationRecord:
        """What the model answers to the part that is held out of the training of round `index`; untimed."""
        dataset, rounds = self._exam.dataset, self._exam.rounds
        round_, positions = rounds[index - 1], self._feed.held_out(index)
        seen = tuple(sorted({c for r in rounds[:index] for c in r.classes}))
        facts = (index, seen, tuple(round_.classes))
        part = Part(dataset.train, positions, round_.transform)
        name = f"the held-out part of round {index}"
        question = _Call((part,), name, self._context(index - 1, round_.classes), round=facts)
        when = f"held out of {index}"
        with self._learner.examined(model):
            [answer] = self._answers([question], model, index, timed=False, when=when)
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

    def probe_answers(self, model: Model, taught: int) -> list[Predictions]:
        """Answers to a few training samples of each round so far, with the same random numbers every time; untimed."""
        calls = []
        for index in range(1, taught + 1):
            part = self._feed.probed(index)
            few = replace(part, positions=_few(part))
            if len(few.positions):
                context = self._context(index - 1, self._exam.rounds[index - 1].classes)
                calls.append(_Call((few,), f"samples of round {index}", context))
        with self._learner.examined(model):
            return list(self._answers(calls, model, taught, timed=False, tried=True))

    def ahead(self, parts: Sequence[Part], model: Model, taught: int) -> list[Any]:
        """Answers of a second object to training samples that were not told yet, or again to such that were, part
        after part; untimed."""
        questions = [_Call((part,), "questions of the stream") for part in parts]
        with self._learner.examined(model, apart=True):
            return [answer.labels for answer in self._answers(questions, model, taught, timed=False, tried=True)]

    def broken_down(self, predictions: Mapping[Asked, Predictions], taught: int) -> str:
        """A sentence where each answer is the same class, though round `taught` has taught several; else ""."""
        if not predictions or self._kind.name != "classification" or len(self._exam.rounds[taught - 1].classes) < 2:
            return ""
        sheets = self._exam.sheets
        labels = [np.unique(p.labels) for key, p in predictions.items() if len(sheets[key.test].union.classes) > 1]
        if not self._exam.rules.task_in_testing and labels:
            labels = [np.unique(np.concatenate(labels))]
        if not labels or any(len(answers) != 1 or answers[0] < 0 for answers in labels):
            return ""
        names = ", ".join(dict.fromkeys(f"'{self._exam.dataset.classes[int(answers[0])]}'" for answers in labels))
        return f"all answers after round {taught} are {names}: of a network this says that its training broke down"

    @property
    def _classes(self) -> int:
        return len(self._exam.dataset.classes)

    # --- questions ----------------------------------------------------------------------------------------------

    def _arranged(
        self, parts: Mapping[int, tuple[Part, ...]], when: str, question: Question | None = None
    ) -> _Arranged:
        """(which sheets, the call): one for all where the task is hidden, else one each. parts: by sheet."""
        tests = [sheet.union for sheet in self._exam.sheets]
        adapted = {j: tests[j] for j in parts if tests[j].adapt is not None and question is None}
        alone = [j for j in parts if j in adapted or self._exam.rules.task_in_testing]
        mixed = tuple(j for j in parts if j not in alone)
        calls = []
        if mixed:
            chosen = tuple(part for j in mixed for part in parts[j])
            name = "the test sets" if question is None else f"the {question.method}"
            calls.append((mixed, _Call(chosen, name, order=self._order(chosen, when), question=question)))
        for j in alone:
            name = f"{'test set' if question is None else f'the {question.method} of'} {tests[j].name}"
            context = self._context(j, tests[j].classes)
            calls.append(((j,), _Call(parts[j], name, context, adapted=adapted.get(j), question=question)))
        return calls

    def _calls_of(
        self, question: Question, labels: _Arranged, parts: Mapping[int, tuple[Part, ...]], taught: int
    ) -> _Arranged:
        """The same samples in the same order; where it fits something, training samples mixed among them.

        None to a learner that lacks the method and may. Raises PluginError for who would learn what is shown to it.
        """
        if question.may_lack and self.unscored:
            return []
        if question.shows_labels and self._learner.adapts:
            raise PluginError(
                f"{self._learner.state.caller.partition('.')[0]} learns while it is tested, so the replies can't be "
                f"shown to it. Take `{question.name}: true` out of the testenv, or the algorithm out of the job.",
                code="unfit-paradigm",
            )
        if not question.fits:
            return [(which, replace(call, question=question)) for which, call in labels if call.adapted is None]
        fitted = self._fitted(question, list(parts))
        return self._arranged({j: (part, *parts[j]) for j, part in fitted.items()}, f"{taught} probe", question)

    @property
    def unscored(self) -> str:
        """What the learner is not asked, which it may lack, and why."""
        return self._learner.state.unscored

    def _fitted(self, question: Question, sheets: Sequence[int]) -> dict[int, Part]:
        """[j] the training samples that are asked with sheet j."""
        if len(self._exam.sheets) != len(self._exam.rounds) or not self._kind.probes:
            raise PluginError(
                f"`{question.name}: true` needs one test set of classes for each round.", code="unfit-exam"
            )
        parts = {j: self._feed.probed(j + 1) for j in sheets}
        return {j: replace(part, positions=part.positions[:_PROBED]) for j, part in parts.items()}

    def _order(self, parts: Sequence[Part], when: str) -> NDArray[np.int64]:
        """By the case's seed and the true labels: a learner that knows the seed can't draw it again."""
        text = f"{self._secret} {self._seed} {when}".encode()
        seed = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
        return np.random.default_rng(seed).permutation(sum(len(part.positions) for part in parts))

    def _context(self, j: int, classes: tuple[int, ...]) -> dict[str, object]:
        """What is told with test set j: the task's identity and its classes where the rules show them."""
        rules = self._exam.rules
        if not rules.task_in_testing:
            return {}
        return {"task": j, "task_classes": classes} if rules.output_space == "task" else {"task": j}

    # --- answers ------------------------------------------------------------------------------------------------

    def _answers(
        self,
        calls: Sequence[_Call],
        model: Model,
        taught: int,
        *,
        timed: bool = True,
        tried: bool = False,
        when: str = "",
    ) -> Iterator[Predictions]:
        """Checked answers, in the order of the calls. timed: what they take, and lose of their length, is `spent`.
        tried: nothing hangs on them. when: which examination it is, for replies that were kept."""
        for call in calls:
            shows = call.question is not None and call.question.shows_labels
            adapted, labels = call.adapted, call.question is None
            pieces = list[Predictions]()
            with ExitStack() as stack:
                by = None
                if when and labels:  # later it is shown what nobody shall find among its replies
                    by = stack.enter_context(self._replies.given(when))
                query = Asking(
                    x=columns_of(call.parts, ("x",), call.order)["x"],
                    name=call.name,
                    label_shape=call.parts[0].samples.y.shape[1:],
                    context=call.context,
                    replies=columns_of(call.parts, ("y",), call.order)["y"] if shows else None,
                    round=call.round,
                    question=None if call.question is None else call.question.name,
                    adapt=None if adapted is None else (self._feed.adaptation(adapted), adapted.name, adapted.classes),
                    taught=taught > 0,
                    tried=tried,
                    replies_by=by,
                )
                answers = self._learner.answers(query, model)
                while (piece := self._next(answers, timed=timed)) is not None:
                    if labels:
                        answered, cut = self._kind.shortened(piece.labels)
                        piece = replace(piece, labels=answered if tried else self._kind.packed(answered))
                        self.spent += Spent(cut=cut if timed else 0)
                    pieces.append(piece)
            yield pieces[0] if len(pieces) == 1 else _joined(pieces)

    def _next(self, answers: Iterator[Predictions], *, timed: bool) -> Predictions | None:
        if not timed:
            return next(answers, None)
        began = spent_so_far()
        answer = next(answers, None)
        if answer is not None:
            self.spent += spent_so_far() - began
        return answer

    def _stored(self, part: Part, answer: Predictions, rows: NDArray[np.int64]) -> Predictions:
        size = self._kind.batch_limit or max(1, len(rows))

        def pieces() -> Iterator[tuple[Part, Any]]:
            for start in range(0, max(1, len(rows)), size):
                labels = picked(answer.labels, rows[start : start + size])
                yield replace(part, positions=part.positions[start : start + size]), labels

        stored = self._kind.stored_predictions(pieces(), self._classes)
        ours = {extra for question in self._questions for extra in question.extras}
        if taken := answer.extras.keys() & {*stored.extras, *self._kind.own_extras, *ours}:
            raise PluginError(f"predict() returned an extra '{min(taken)}', a name of ours.", code="invalid-result")
        return replace(stored, extras={**stored.extras, **{name: v[rows] for name, v in answer.extras.items()}})


def _joined(pieces: Sequence[Predictions]) -> Predictions:
    """Answers to all samples of a question. Raises PluginError where some have other extras."""
    if any(piece.extras.keys() != pieces[0].extras.keys() for piece in pieces):
        raise PluginError(
            "predict() returned extras with some of its answers, and not with others", code="invalid-result"
        )
    extras = {name: np.concatenate([piece.extras[name] for piece in pieces]) for name in pieces[0].extras}
    return Predictions([label for piece in pieces for label in piece.labels], extras)


def _few(part: Part) -> NDArray[np.int64]:
    """Positions of some of its samples: of each class the first, or two of what takes longer to answer."""
    y, count = part.samples.y, len(part.positions)
    if y.ndim > 1 or y.dtype == object:
        return part.positions[:2]
    firsts = np.unique(y[part.positions], return_index=True)[1][:_MANY]
    spread = np.linspace(0, max(0, count - 1), min(_MANY, count)).astype(np.int64)
    return np.asarray(part.positions[np.unique(np.concatenate([firsts, spread]))])


def _rows(call: _Call) -> Iterator[NDArray[np.int64]]:
    """For each part where its samples are in what was asked."""
    ends = np.cumsum([len(part.positions) for part in call.parts])
    where = np.arange(ends[-1]) if call.order is None else np.argsort(call.order)
    for part, end in zip(call.parts, ends, strict=True):
        yield where[end - len(part.positions) : end]


def _split(call: _Call, values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for rows in _rows(call):
        yield values[rows]


def _secret(exam: Exam) -> str:
    """What the true labels say, which a learner never sees: the order of questions follows from it."""
    sha = hashlib.blake2b(digest_size=16)
    for test in (sheet.union for sheet in exam.sheets):
        labels = np.asarray(exam.dataset.test.y[test.test[: 4096 if exam.dataset.test.y.ndim == 1 else _MANY]])
        sha.update(repr(labels.tolist()).encode() if labels.dtype == object else np.ascontiguousarray(labels).tobytes())
        sha.update(np.ascontiguousarray(test.test).tobytes())
    return sha.hexdigest()
