"""Conversations in reports: questions, expected replies, and the replies of each method after each round.

replies.csv has all of them; the page a few questions of each test set, with the last replies of all rows side by side.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import nsmallest
from itertools import repeat, zip_longest
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult, PredictionKey
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.packed_replies import Replies
from ianvs.exam.metrics.registry import find
from ianvs.results.page.reply_file import Piece
from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey
from ianvs.results.report.row_scores import reported_results
from ianvs.results.report.row_tables import csv_of
from ianvs.results.report.values import Value, cell_text
from ianvs.store import CaseStore, ExamStore
from ianvs.store.keys import digest

HEADER = (
    *("testenv", "algorithm", "hyperparameters", "seed", "round", "test_set", "sample", "turn"),
    *("prompt", "expected", "reply", "similarity"),
)
_SIMILARITY = "lexical_similarity"
_MOST_QUESTIONS = 3  # shown questions of each test set
_MOST_TESTS = 8
_MOST_ROWS = 12
_LONGEST = 1200  # characters of a text in the page; replies.csv has the full text
_PIECES = re.compile(r"\S+\s*")
_MOST_WORDS = 400  # that are compared


@dataclass(frozen=True)
class Question:
    """One turn of a conversation. prompt: "" if the workspace does not hold it."""

    test: str
    sample: str
    turn: int
    prompt: str
    expected: str


@dataclass(frozen=True)
class Reply:
    """A reply. round: 0 is the untrained model. text: None for no reply. similarity: by `lexical_similarity`."""

    question: Question
    round: int
    text: str | None
    similarity: float


@dataclass(frozen=True)
class QuestionsOfTest:
    """The questions of one test set, read on access. prompts: None if they are unknown."""

    name: str
    samples: Sequence[str]
    prompts: Replies | None
    truth: Replies

    @cached_property
    def drawn(self) -> frozenset[str]:
        """Names of a few samples, the same for every row. Not the first ones, which may all be of one type."""
        return frozenset(nsmallest(_MOST_QUESTIONS, self.samples, key=lambda id_: crc32(f"{self.name} {id_}".encode())))

    def __iter__(self) -> Iterator[list[Question]]:
        """Yield the questions of each sample."""
        prompts = repeat(()) if self.prompts is None else iter(self.prompts)
        for sample, heard, turns in zip(self.samples, prompts, self.truth, strict=False):
            both = enumerate(zip_longest(heard, turns), start=1)
            yield [Question(self.name, sample, turn, prompt or "", wanted or "") for turn, (prompt, wanted) in both]


class ExamQuestions:
    """The questions of exams with conversations; each exam is opened once."""

    def __init__(self, workspace: Path) -> None:
        self._store = ExamStore(workspace)
        self._tests: dict[str, list[QuestionsOfTest] | None] = {}

    @property
    def any_questions(self) -> bool:
        """Whether any requested exam has conversations."""
        return any(self._tests.values())

    def show_answers(self, case: Path | None) -> bool:
        """Return whether the page shows images or conversations for the exam of the case in this folder."""
        exam_id = "" if case is None else CaseStore(case.parents[1]).exam_id(case.name)
        record = self._store.record(exam_id) if exam_id else None
        return record is not None and record.shows != ""

    def questions(self, exam_id: str) -> list[QuestionsOfTest] | None:
        """Return the questions of each test set; None if the exam has no conversations."""
        if exam_id not in self._tests:
            self._tests[exam_id] = self._read(exam_id)
        return self._tests[exam_id]

    def _read(self, exam_id: str) -> list[QuestionsOfTest] | None:
        record = self._store.record(exam_id) if exam_id else None
        if record is None or record.shows != "replies":
            return None
        prompts: list[Replies | None] = [Replies(packed) for packed in self._store.pictures(exam_id)]
        names, truth = self._store.samples(exam_id), map(Replies, self._store.truth(exam_id))
        return list(map(QuestionsOfTest, record.tests, names, prompts or [None] * len(names), truth))


class CaseReplies:
    """All replies of a finished case; none if its exam has no conversations."""

    def __init__(self, result: CaseResult, exams: ExamQuestions) -> None:
        self._cases = CaseStore(result.directory.parents[1])
        self._id, self._rounds = result.case.id, len(result.rounds)
        self.tests = exams.questions(self._cases.exam_id(self._id)) or []

    def __bool__(self) -> bool:
        return bool(self.tests)

    @property
    def digest(self) -> str:
        """A digest of the replies and their questions."""
        return self._cases.predictions_digest(self._id)

    def __iter__(self) -> Iterator[Reply]:
        """Yield replies round after round."""
        near = self._similarities() if self else {}
        for index, j, replies in self._stored_replies():
            for samples, given, row in zip(self.tests[j], replies, near[PredictionKey(j, index)], strict=True):
                for question, reply, value in zip(samples, given, row.tolist(), strict=False):
                    yield Reply(question, index, reply, value)

    def _stored_replies(self) -> Iterator[tuple[int, int, Replies]]:
        """Yield (round, test set, replies)."""
        for index in range(self._rounds if self else 0):
            stored = self._cases.predictions(self._id, index)
            yield from (
                (index, j, Replies(stored[PredictionKey(j)].labels))
                for j in range(len(self.tests))
                if PredictionKey(j) in stored
            )

    def _similarities(self) -> dict[PredictionKey, NDArray[np.float64]]:
        """Return (N, turns) for each test set after each round. They are computed once, and stored with the case."""
        if (stored := self._cases.similarities(self._id)) is not None:
            return stored
        similarities = {}
        metric = find(_SIMILARITY)
        assert metric is not None and metric.function is not None, "it is ours"
        for index, j, replies in self._stored_replies():
            record = EvaluationRecord((), self.tests[j].truth, replies)
            metric.function(record)
            similarities[PredictionKey(j, index)] = record.rows[_SIMILARITY]
        self._cases.keep_similarities(self._id, similarities)
        return similarities


def reply_pieces(
    rows: Mapping[RowKey, LeaderboardRow], results: Iterable[CaseResult], exams: ExamQuestions
) -> Iterator[Piece]:
    """Yield the parts of replies.csv: the lines of each case."""
    for key, result in reported_results(rows, results):
        replies = CaseReplies(result, exams)
        if replies:
            row = rows[key]
            settings = "; ".join(f"{name}={cell_text(value)}" for name, value in row.hyperparameters.items())
            about = (row.testenv, row.algorithm, settings, result.case.seed)
            yield digest([replies.digest, *about]), _Lines(about, replies)


@dataclass(frozen=True)
class _Lines:
    """The lines of one case. about: the name of its row, and its seed."""

    about: Sequence[Value]
    replies: CaseReplies

    def __iter__(self) -> Iterator[str]:
        for reply in self.replies:
            query = reply.question
            texts = (query.test, query.sample, query.turn, query.prompt, query.expected, reply.text or "")
            line = (*self.about, reply.round, *texts, f"{reply.similarity:.4f}")
            yield csv_of([line], texts_alone=True)


@dataclass(frozen=True)
class RoundReply:
    """The reply of one row after one round.

    Pieces: (text, whether it is new since the round before); None: no reply.
    """

    pieces: Sequence[tuple[str, bool]] | None
    similarity: float


@dataclass
class QuestionReplies:
    """A question with its replies. by_row: (id, label, replies by round)."""

    question: Question
    by_row: list[tuple[str, str, dict[int, RoundReply]]] = field(default_factory=list)

    @property
    def rounds(self) -> list[int]:
        """Rounds after which any row replied; the untrained model usually does not."""
        replied = {n for *_, by_round in self.by_row for n, reply in by_round.items() if reply.pieces is not None}
        return sorted(replied | {n for *_, by_round in self.by_row for n in by_round if n})


class PageReplies:
    """Accumulates results one after the other; keeps the replies of the first seed of each row to a few questions."""

    def __init__(self, rows: Sequence[ShownRow], exams: ExamQuestions) -> None:
        self._rows = {shown.key: shown for shown in rows[:_MOST_ROWS]}
        self._exams = exams
        self._replies: dict[RowKey, list[Reply]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        shown = self._rows.get(key)
        if shown is None or result.case.seed != shown.row.seeds[0]:
            return
        counts: dict[str, dict[tuple[str, int], None]] = {}
        chosen, replies = [], CaseReplies(result, self._exams)
        drawn = {test.name: test.drawn for test in replies.tests[:_MOST_TESTS]}
        for reply in replies:
            names = counts.setdefault(reply.question.test, {})
            name = (reply.question.sample, reply.question.turn)
            if name[0] in drawn.get(reply.question.test, ()) and (name in names or len(names) < _MOST_QUESTIONS):
                names[name] = None
                chosen.append(reply)
        if chosen:
            self._replies[key] = chosen

    def questions(self) -> list[QuestionReplies]:
        """Return questions in the order of test sets, with rows in the order of the leaderboard."""
        by_name: dict[tuple[str, str, int], QuestionReplies] = {}
        for key, shown in self._rows.items():
            by_question: dict[tuple[str, str, int], list[Reply]] = {}
            for reply in self._replies.get(key, ()):
                question = reply.question
                by_question.setdefault((question.test, question.sample, question.turn), []).append(reply)
            for name, replies in by_question.items():
                question = replies[0].question
                cut = replace(question, prompt=_truncated(question.prompt), expected=_truncated(question.expected))
                by_name.setdefault(name, QuestionReplies(cut))
                by_name[name].by_row.append((shown.id, shown.label, _through_rounds(replies)))
        return list(by_name.values())


def _through_rounds(replies: Sequence[Reply]) -> dict[int, RoundReply]:
    by_round = {}
    before: str | None = None
    for reply in replies:
        pieces = None if reply.text is None else changed_words(before, _truncated(reply.text))
        by_round[reply.round] = RoundReply(pieces, reply.similarity)
        before = _truncated(reply.text) if reply.text is not None else before
    return by_round


def _truncated(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def changed_words(before: str | None, after: str) -> list[tuple[str, bool]]:
    """Return consecutive pieces of `after`, and whether each is new. before: None: nothing is new.

    Words are compared without the blanks between them.
    """
    if before is None or before == after:
        return [(after, False)] if after else []
    old, new = before.split(), _PIECES.findall(after)
    start = after[: len(after) - len(after.lstrip())]
    if len(old) > _MOST_WORDS or len(new) > _MOST_WORDS:
        return [(after, True)]
    matcher = difflib.SequenceMatcher(None, old, [word.rstrip() for word in new], autojunk=False)
    pieces = [(start, False)] if start else []
    for kind, _, _, first, last in matcher.get_opcodes():
        if last > first:
            part = "".join(new[first:last])
            if kind == "equal":
                pieces.append((part, False))
            else:  # the blank after a word does not count as changed
                pieces.append((part.rstrip(), True))
                if part != part.rstrip():
                    pieces.append((part[len(part.rstrip()) :], False))
    return pieces
