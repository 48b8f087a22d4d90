"""Conversations: what was asked, what was expected, and what each method said after each round.

replies.csv has all of it; the page a few questions of each test set.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ianvs.base.types import Asked, CaseResult
from ianvs.exam.kinds.conversation_kind import ConversationKind, unpacked
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.registry import find
from ianvs.results.report import LeaderboardRow
from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_scores import finished
from ianvs.results.report.row_tables import csv_of
from ianvs.results.report.values import Value, cell_text
from ianvs.store import CaseStore, ExamStore

HEADER = (
    *("testenv", "algorithm", "hyperparameters", "seed", "round", "test_set", "sample", "turn"),
    *("prompt", "expected", "reply", "similarity"),
)
_AT_ONCE = 500  # pairs that are compared in one call
_SIMILARITY = "lexical_similarity"
_MOST_QUESTIONS = 3  # of each test set
_MOST_TESTS = 8
_MOST_ROWS = 12
_LONGEST = 1200  # characters of a text in the page; replies.csv has all of it
_PIECES = re.compile(r"\S+\s*")
_MOST_WORDS = 400  # that are compared


@dataclass(frozen=True)
class Question:
    """One turn of one conversation. prompt: "" where the workspace does not hold it."""

    test: str
    sample: str
    turn: int
    prompt: str
    expected: str


@dataclass(frozen=True)
class Reply:
    """round: 0 is the untrained model. said: None where no reply was given."""

    question: Question
    round: int
    said: str | None


class Exams:
    """The questions of exams of conversations, each read once."""

    def __init__(self, workspace: Path) -> None:
        self._store = ExamStore(workspace)
        self._known: dict[str, list[list[list[Question]]] | None] = {}

    @property
    def any_questions(self) -> bool:
        """Whether any exam that was asked for is one of conversations."""
        return any(self._known.values())

    def questions(self, exam_id: str) -> list[list[list[Question]]] | None:
        """[test set][sample][turn]; None where the exam is not one of conversations."""
        if exam_id not in self._known:
            self._known[exam_id] = self._read(exam_id)
        return self._known[exam_id]

    def _read(self, exam_id: str) -> list[list[list[Question]]] | None:
        record = self._store.record(exam_id) if exam_id else None
        if record is None or record.kind != ConversationKind.name:
            return None
        prompts = [unpacked(one)[0] for one in self._store.pictures(exam_id)]
        names = self._store.samples(exam_id)
        found = []
        for j, truth in enumerate(self._store.truth(exam_id)):
            wanted = unpacked(truth)[0]
            asked = prompts[j].tolist() if prompts else [[""] * len(turns) for turns in wanted]
            found.append(
                [
                    [
                        Question(record.tests[j], names[j][n], turn, said or "", expected or "")
                        for turn, (said, expected) in enumerate(zip(heard, turns, strict=True), start=1)
                    ]
                    for n, (heard, turns) in enumerate(zip(asked, wanted, strict=True))
                ]
            )
        return found


def replies_of(result: CaseResult, exams: Exams) -> Iterator[Reply]:
    """All replies of a finished case, round after round; nothing where its exam is not one of conversations."""
    cases = CaseStore(result.directory.parents[1])
    questions = exams.questions(cases.exam_id(result.case.id))
    for index in range(len(result.rounds)) if questions else ():
        stored = cases.predictions(result.case.id, index)
        for j, samples in enumerate(questions or ()):
            if Asked(j) not in stored:
                continue
            said = unpacked(stored[Asked(j)].labels)[0]
            for turns, given in zip(samples, said, strict=True):
                for question, reply in zip(turns, given, strict=True):
                    yield Reply(question, index, reply)


def similarities(pairs: Iterable[tuple[str, str | None]]) -> dict[tuple[str, str | None], float]:
    """How near each (expected, reply) is in spelling, by the metric lexical_similarity; each pair is compared once."""
    distinct = list(dict.fromkeys(pairs))
    metric = find(_SIMILARITY)
    found: dict[tuple[str, str | None], float] = {}
    if metric is None or metric.function is None:
        return found
    for start in range(0, len(distinct), _AT_ONCE):
        some = distinct[start : start + _AT_ONCE]
        names = [f"{n:04d}" for n in range(len(some))]
        truth, said = np.empty(len(some), dtype=object), np.empty(len(some), dtype=object)
        truth[:], said[:] = [[expected] for expected, _ in some], [[reply] for _, reply in some]
        # A topic of its own for each pair: the metric tells the mean of each topic.
        record = EvaluationRecord((), truth, said, topics=np.array(names, dtype=str))
        parts = metric.function(record)
        if isinstance(parts, Mapping):
            found |= {pair: float(parts[f"topic {name}"]) for pair, name in zip(some, names, strict=True)}
    return found


def write_replies(rows: Mapping[RowKey, LeaderboardRow], results: Iterable[CaseResult], exams: Exams) -> Iterator[str]:
    """The lines of replies.csv, a piece at a time; nothing where no exam is one of conversations."""
    known: dict[tuple[str, str | None], float] = {}
    begun = False
    for key, result in finished(rows, results):
        replies = list(replies_of(result, exams))
        if not replies:
            continue
        pairs = ((reply.question.expected, reply.said) for reply in replies)
        known |= similarities(pair for pair in pairs if pair not in known)
        row = rows[key]
        settings = "; ".join(f"{name}={cell_text(value)}" for name, value in row.hyperparameters.items())
        lines: list[Sequence[Value]] = [] if begun else [HEADER]
        for reply in replies:
            asked = reply.question
            near = known.get((asked.expected, reply.said))
            texts = (asked.test, asked.sample, asked.turn, asked.prompt, asked.expected, reply.said or "")
            similarity = "" if near is None else f"{near:.4f}"
            lines.append((row.testenv, row.algorithm, settings, result.case.seed, reply.round, *texts, similarity))
        begun = True
        yield csv_of(lines, texts_alone=True)


@dataclass(frozen=True)
class Said:
    """What one row said after one round. pieces: (text, whether it is new since the round before); None: no reply."""

    pieces: Sequence[tuple[str, bool]] | None
    similarity: float | None


@dataclass
class AskedQuestion:
    """One question. by_row: (label, replies by round)."""

    question: Question
    by_row: list[tuple[str, dict[int, Said]]] = field(default_factory=list)

    @property
    def rounds(self) -> list[int]:
        """Those after which any row replied; the untrained model mostly doesn't."""
        told = {n for _, said in self.by_row for n, one in said.items() if one.pieces is not None}
        return sorted(told | {n for _, said in self.by_row for n in said if n})


class PageReplies:
    """Takes results one after the other; keeps the replies of the first seed of each row to a few questions."""

    def __init__(self, rows: Sequence[ShownRow], exams: Exams) -> None:
        self._rows = {one.key: one for one in rows[:_MOST_ROWS]}
        self._exams = exams
        self._said: dict[RowKey, list[Reply]] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        one = self._rows.get(key)
        if one is None or result.case.seed != one.row.seeds[0]:
            return
        counts: dict[str, dict[tuple[str, int], None]] = {}
        kept = []
        for reply in replies_of(result, self._exams):
            asked = counts.setdefault(reply.question.test, {})
            name = (reply.question.sample, reply.question.turn)
            if len(counts) <= _MOST_TESTS and (name in asked or len(asked) < _MOST_QUESTIONS):
                asked[name] = None
                kept.append(reply)
        if kept:
            self._said[key] = kept

    def questions(self) -> list[AskedQuestion]:
        """In the order of test sets, rows in the order of the leaderboard."""
        near = similarities((r.question.expected, r.said) for said in self._said.values() for r in said)
        found: dict[tuple[str, str, int], AskedQuestion] = {}
        for key, one in self._rows.items():
            by_question: dict[tuple[str, str, int], list[Reply]] = {}
            for reply in self._said.get(key, ()):
                asked = reply.question
                by_question.setdefault((asked.test, asked.sample, asked.turn), []).append(reply)
            for name, replies in by_question.items():
                found.setdefault(name, AskedQuestion(_cut_question(replies[0].question)))
                found[name].by_row.append((one.label, _through_rounds(replies, near)))
        return list(found.values())


def _through_rounds(replies: Sequence[Reply], near: Mapping[tuple[str, str | None], float]) -> dict[int, Said]:
    said = {}
    before: str | None = None
    for reply in replies:
        pieces = None if reply.said is None else changed_words(before, _cut(reply.said))
        said[reply.round] = Said(pieces, near.get((reply.question.expected, reply.said)))
        before = _cut(reply.said) if reply.said is not None else before
    return said


def _cut_question(question: Question) -> Question:
    return Question(question.test, question.sample, question.turn, _cut(question.prompt), _cut(question.expected))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def changed_words(before: str | None, after: str) -> list[tuple[str, bool]]:
    """Pieces of `after`, in order and complete, and whether they are new; None before: nothing is.

    Words are compared with the blanks between them left out.
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
            said = "".join(new[first:last])
            if kind == "equal":
                pieces.append((said, False))
            else:  # the blank after a word is not what changed
                pieces.append((said.rstrip(), True))
                if said != said.rstrip():
                    pieces.append((said[len(said.rstrip()) :], False))
    return pieces
