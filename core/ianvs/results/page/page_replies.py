"""Conversations in the page: of each test set a few, with what each row said after each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ianvs.base.types import CaseResult
from ianvs.results.page.replies import Exams, Question, Reply, replies_of, similarities
from ianvs.results.page.reply_changes import changed_words
from ianvs.results.page.shown_rows import ShownRow
from ianvs.results.report.leaderboard_row import RowKey

__all__ = ["Asked", "PageReplies", "Said"]

_MOST_QUESTIONS = 3  # of each test set
_MOST_TESTS = 8
_MOST_ROWS = 12
_LONGEST = 1200  # characters of a text in the page; replies.csv has all of it


@dataclass(frozen=True)
class Said:
    """What one row said after one round. pieces: (text, whether it is new since the round before); None: no reply."""

    pieces: Sequence[tuple[str, bool]] | None
    similarity: float | None


@dataclass
class Asked:
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

    def questions(self) -> list[Asked]:
        """In the order of test sets, rows in the order of the leaderboard."""
        near = similarities((r.question.expected, r.said) for said in self._said.values() for r in said)
        found: dict[tuple[str, str, int], Asked] = {}
        for key, one in self._rows.items():
            by_question: dict[tuple[str, str, int], list[Reply]] = {}
            for reply in self._said.get(key, ()):
                asked = reply.question
                by_question.setdefault((asked.test, asked.sample, asked.turn), []).append(reply)
            for name, replies in by_question.items():
                found.setdefault(name, Asked(_cut_question(replies[0].question)))
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
