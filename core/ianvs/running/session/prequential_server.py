"""Serves a prequential stream: the chunks to predict, and the labels revealed after predictions.

A chunk is served without labels, predicted, and then revealed, in this order and once. Labels of chunks that were not
predicted are only here.
"""

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import ExamRuleError, PluginError
from ianvs.config.spec import PrequentialSpec
from ianvs.exam.data.listing import column
from ianvs.exam.data.parts import Column, Part, as_served, column_in_memory, columns_of
from ianvs.exam.data_types import DataType
from ianvs.exam.scenarios.exam import Exam
from ianvs.exam.scenarios.feedback_view import FeedbackView
from ianvs.exam.scenarios.views import TrainView
from ianvs.running.session.feed import Chunk, DataFeed, merge_parts
from ianvs.running.session.stream_journal import Journal
from ianvs.running.session.stream_order import StreamOrder
from ianvs.running.session.stream_scores import StreamScores
from ianvs.running.session.validate_predictions import is_equal, select_rows

Ahead = Callable[[Sequence[Part]], list[Any]]
"""Predicts parts with a copy of the learner, one after the other."""


@dataclass(frozen=True)
class UnlabelledChunk:
    """The samples of a chunk without labels. number: counts from 1. name: its name in errors."""

    number: int
    x: Column
    name: str
    label_shape: tuple[int, ...]


@dataclass(frozen=True)
class RevealedChunk:
    """A chunk with revealed labels or other feedback. classes: of its labels."""

    number: int
    view: TrainView | FeedbackView
    classes: tuple[int, ...]


@dataclass
class _Times:
    """Times of a round. cpu: CPU seconds of predictions only."""

    answering: float = 0.0
    learning: float = 0.0
    cpu: float = 0.0


class PrequentialServer:
    """The prequential streams of one case.

    Args:
        journals: Returns the path of the journal of a round, by its number.
        cpu: Returns the CPU seconds of the learner so far.
        ahead: Returns predictions of a copy of the learner.
        between: Called after the learner was trained on a chunk.
        tells: Whether anything is shown to the learner; nothing is shown to a stateless reference.
        receives_feedback: Whether the learner receives feedback on its predictions instead of training data.
    """

    def __init__(
        self,
        exam: Exam,
        spec: PrequentialSpec,
        feed: DataFeed,
        kind: DataType,
        own_cost: int,
        journals: Callable[[int], Path],
        cpu: Callable[[], float],
        ahead: Ahead,
        between: Callable[[Chunk], None],
        *,
        tells: bool,
        receives_feedback: bool,
    ) -> None:
        self._exam, self._spec, self._feed, self._kind = exam, spec, feed, kind
        self._order = StreamOrder(spec.delay, spec.cost(own_cost))
        self._tells, self._receives_feedback = tells, receives_feedback
        self._journals, self._cpu = journals, cpu
        self._ahead, self._between = ahead, between
        self._chunks = [(k, chunk) for k in range(1, len(exam.rounds) + 1) for chunk in feed.chunks(k)]
        self._starts = np.cumsum([0, *(chunk.size for _, chunk in self._chunks)])
        self._answers: dict[int, Any] = {}  # predictions of this round, and of earlier chunks that are not revealed yet
        self._next = self._end = 0  # chunks from 0: the next one, and the end of the round
        self._round = 0
        self._begun = self._is_asked = False
        self._journal: Journal
        self._since = self._cpu_since = 0.0
        self.times = _Times()
        self.differing: list[int] = []  # chunks with other predictions than before a kill
        self.samples = 0  # revealed in this step
        flow = [part.positions for _, chunk in self._chunks for part in chunk.parts]
        self._flow = np.concatenate([np.empty(0, np.int64), *flow])
        self._scores = StreamScores(exam.dataset, kind, spec, self._flow)

    def begin(self, step: int) -> None:
        """Prepare for round `step`."""
        self._next, self._end = self._bounds(step)
        self._round, self._begun, self._is_asked = step, False, False
        self._near: dict[int, list[NDArray[np.float64]]] = {shift: [] for shift in self._spec.near_future}
        self._journal = Journal(self._journals(step))
        self._load_predictions(self._next)
        self.times, self.differing, self.samples = _Times(), [], 0

    def start(self) -> None:
        """Start serving the round. Raises ExamRuleError if it was served before."""
        if self._begun:
            raise ExamRuleError(
                f"feed({self._round}) was called before: the stream of round {self._round} is served once. Feedback to "
                "a chunk comes after its predictions.",
                code="broken-rule",
            )
        self._begun, self._since = True, 0.0

    def next_chunk(self) -> UnlabelledChunk | None:
        """Return the next chunk to predict; None at the end of the round."""
        if not self._begun or self._is_asked:
            last = f"chunk {self._next + 2} comes after the predictions for chunk {self._next + 1}"
            raise ExamRuleError(last if self._begun else "call feed() first: it begins the round.", code="broken-rule")
        if self._since:
            self.times.learning += time.perf_counter() - self._since
            self._after_learning(self._next - 1)
        if self._next == self._end:
            self._since = 0.0
            return None
        chunk = self._chunks[self._next][1]
        x = as_served(columns_of(chunk.parts, ("x",))["x"], 1)
        self._is_asked = True
        self._since, self._cpu_since = time.perf_counter(), self._cpu()
        return UnlabelledChunk(chunk.number, x, chunk.name, chunk.parts[0].samples.y.shape[1:])

    def store_predictions(self, number: int, labels: Any, caller: str) -> RevealedChunk | None:
        """Store the validated predictions of the last chunk, and return the chunk that is revealed after it."""
        self.times.answering += time.perf_counter() - self._since
        self.times.cpu += max(0.0, self._cpu() - self._cpu_since)
        t, chunk = self._next, self._chunks[self._next % len(self._chunks)][1]
        if not self._is_asked:
            raise ExamRuleError(
                f"chunk {number} was predicted already; the first predictions count.", code="broken-rule"
            )
        if number != chunk.number:
            raise ExamRuleError(
                f"predictions for chunk {number}, but the present one is chunk {chunk.number}.", code="broken-rule"
            )
        answers = self._kind.shortened(copy.deepcopy(labels))[0]  # a learner may change its result object later
        first = self._journal.first(t)
        if first is None:
            self._journal.add(t, answers)
        else:
            first = self._checked(chunk, first, caller)
            if not is_equal(first, answers):
                self.differing.append(chunk.number)
            answers = first
        self._answers[t] = answers
        self._is_asked, self._next = False, t + 1
        due = self._order.revealed_after(t) if self._tells else None
        reply = None if due is None else self._revealed_chunk(due)
        self._since = time.perf_counter()
        return reply

    def record(self, *, last: bool) -> dict[str, NDArray[Any]]:
        """Return the arrays (n,) to store for the completed round, in the order of its samples.

        last: whether it is the last round. near S: scores of the copies' predictions, chunk after chunk.
        """
        begin, end = self._bounds(self._round)
        numbers = range(begin, end)
        of_round = slice(self._starts[begin], self._starts[end])
        where, sizes = self._flow[of_round], np.diff(self._starts[begin : end + 1])
        tellings = [self._order.revealed_at(index, len(self._chunks)) if self._tells else -1 for index in numbers]
        answers = _concatenated([self._answers[index] for index in numbers])
        stored: dict[str, NDArray[Any]] = {
            "episode": np.arange(of_round.start, of_round.stop),
            "sample": where,
            "chunk": np.repeat(np.array(numbers, np.int64), sizes),
            "told_at": np.repeat(np.array(tellings, np.int64), sizes),
            "scores": self._scores.scores_of_answers(where, answers),
            "truth": self._scores.truth[of_round],
            "said": self._scores.answer_numbers(answers),
        }
        for name, values in (("topic", self._scores.topics), ("fact", self._scores.facts)):
            if values is not None:
                stored[name] = values[of_round]
        if self._tells:
            stored |= {f"near {shift}": _concatenated_scores(scores) for shift, scores in self._near.items()}
        spec = self._spec
        stored["settings"] = np.array([spec.delay, spec.window, spec.start, spec.r_max])
        if last and self._tells and self._spec.second_pass:
            parts = [part for _, chunk in self._chunks for part in chunk.parts]
            again = zip(parts, self._ahead(parts), strict=True)
            stored["second"] = _concatenated_scores(
                [self._scores.scores_of_answers(part.positions, labels) for part, labels in again]
            )
        return stored

    def end(self) -> None:
        """Discard predictions that are not needed any more, once the round is stored."""
        self._journal.close()
        waiting = {index for index in self._answers if self._order.revealed_at(index, len(self._chunks)) >= self._end}
        for index in [chunk for chunk in self._answers if chunk not in waiting or not self._tells]:
            del self._answers[index]
        needed = {self._chunks[index][0] for index in self._answers}
        for number in range(1, self._round + 1):
            if number not in needed:
                self._journals(number).unlink(missing_ok=True)

    @property
    def revealed_so_far(self) -> int:
        """The number of samples revealed by the end of the round."""
        if not self._tells:
            return 0
        ends = [self._order.revealed_at(index, len(self._chunks)) for index in range(len(self._chunks))]
        return sum(c.size for (_, c), end in zip(self._chunks, ends, strict=True) if 0 <= end < self._end)

    # --- private ------------------------------------------------------------------------------------------------

    def _bounds(self, step: int) -> tuple[int, int]:
        """Return [start, end) of the chunks of a round; (0, 0) if it has none."""
        numbers = [index for index, (round_, _) in enumerate(self._chunks) if round_ == step]
        return (numbers[0], numbers[-1] + 1) if numbers else (0, 0)

    def _load_predictions(self, before: int) -> None:
        """Load the predictions of earlier chunks that are revealed later."""
        lacking = {
            index
            for index in range(before)
            if self._tells
            and self._order.revealed_at(index, len(self._chunks)) >= before
            and index not in self._answers
        }
        for number in sorted({self._chunks[index][0] for index in lacking}):
            journal = Journal(self._journals(number))
            for index in lacking:
                if self._chunks[index][0] == number and (answers := journal.first(index)) is not None:
                    self._answers[index] = answers
        if gone := lacking - self._answers.keys():
            raise PluginError(f"the answers to chunk {min(gone) + 1} of the stream are gone", code="missing-file")

    def _after_learning(self, chunk: int) -> None:
        """Record that the learner was trained after `chunk`."""
        self._between(self._chunks[chunk][1])
        if (chunk + 1) % self._spec.near_future_every or not self._tells:
            return
        shifts = [shift for shift in self._spec.near_future if chunk + 1 + shift < len(self._chunks)]
        if not shifts:
            return
        parts = [self._chunks[chunk + 1 + shift][1].parts for shift in shifts]
        answers = iter(self._ahead([part for chunk_parts in parts for part in chunk_parts]))
        for shift, chunk_parts in zip(shifts, parts, strict=True):
            self._near[shift] += [self._scores.scores_of_answers(part.positions, next(answers)) for part in chunk_parts]

    def _revealed_chunk(self, chunk: int) -> RevealedChunk:
        piece = self._chunks[chunk][1]
        view = self._feed.chunk(piece)
        if not self._receives_feedback:
            self.samples += piece.size
            given = {name: as_served(values, 1) for name, values in view.columns.items()}
            return RevealedChunk(piece.number, TrainView(given, name=view.name, passes=view.passes), piece.classes)
        answers, rows = self._answers[chunk], np.arange(piece.size)
        labels = self._labels(piece)
        kind = self._spec.feedback
        if kind != "label" and labels.ndim == 1 and labels.dtype.kind in "iu":
            rows = np.flatnonzero(labels >= 0)  # samples with hidden labels are not revealed at all
        self.samples += len(rows)
        feedback = labels if kind == "label" else self._feedback_on(chunk, labels, answers)
        columns = {
            "x": column_in_memory(columns_of(piece.parts, ("x",))["x"].gather(rows)),
            "answers": column_in_memory(copy.deepcopy(select_rows(answers, rows))),
            "told": column_in_memory(copy.deepcopy(feedback[rows])),
        }
        episodes = np.asarray(self._starts[chunk] + rows, np.int64)
        heard = FeedbackView(columns, kind=kind, name=view.name, episodes=episodes, delay=self._spec.delay)
        return RevealedChunk(piece.number, heard, piece.classes if kind == "label" else ())

    def _feedback_on(self, chunk: int, labels: NDArray[Any], answers: Any) -> NDArray[Any]:
        """Return (n,) feedback on predictions: whether each is correct, its score, or a text."""
        positions = self._positions(chunk)
        scores = self._scores.scores_of_answers(positions, answers, labels)
        if self._spec.feedback == "correctness":
            return np.asarray(scores >= self._spec.r_max)
        if self._spec.feedback == "score":
            return scores
        return column([self._scores.feedback_text(*triple) for triple in zip(positions, labels, scores, strict=True)])

    def _checked(self, chunk: Chunk, answers: Any, caller: str) -> Any:
        part = chunk.parts[0] if len(chunk.parts) == 1 else _part_of(chunk)
        unseen = self._exam.rules.unseen != "none"
        checked = self._kind.checker(part, len(self._exam.dataset.classes), unseen=unseen)(answers, caller)
        return self._kind.shortened(checked)[0]

    def _labels(self, chunk: Chunk) -> NDArray[Any]:
        return np.concatenate([np.asarray(part.shown_labels) for part in chunk.parts])

    def _positions(self, chunk: int) -> NDArray[np.int64]:
        return self._flow[self._starts[chunk] : self._starts[chunk + 1]]


def _concatenated_scores(pieces: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    return np.concatenate(pieces) if pieces else np.empty(0)


def _concatenated(answers: Sequence[Any]) -> Any:
    """Concatenate the validated predictions of several chunks."""
    shapes = {answer.shape[1:] if isinstance(answer, np.ndarray) else None for answer in answers}
    alone = len(shapes) != 1 or None in shapes
    return [answer for of_chunk in answers for answer in of_chunk] if alone else np.concatenate(answers)


def _part_of(chunk: Chunk) -> Part:
    """Return the part of a chunk, also of one that extends beyond a round, to validate predictions."""
    [part, *more] = merge_parts(chunk.parts)
    return part if not more else Part(part.samples, np.concatenate([piece.positions for piece in (part, *more)]))
