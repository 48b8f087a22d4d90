"""Conversations: what was asked, what was expected, and what each method said after each round."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ianvs.base.types import Asked, CaseResult
from ianvs.exam.kinds.conversation_kind import ConversationKind, unpacked
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.registry import find
from ianvs.results.report import LeaderboardRow
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.pictures import finished
from ianvs.results.report.values import cell_text
from ianvs.store import CaseStore, ExamStore

__all__ = ["HEADER", "Exams", "Question", "Reply", "replies_of", "similarities", "write_replies"]

HEADER = (
    "testenv",
    "algorithm",
    "hyperparameters",
    "seed",
    "round",
    "test_set",
    "sample",
    "turn",
    "prompt",
    "expected",
    "reply",
    "similarity",
)
_AT_ONCE = 500  # pairs that are compared in one call
SIMILARITY = "lexical_similarity"


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
    metric = find(SIMILARITY)
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
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, lineterminator="\n")
        if not begun:
            writer.writerow(HEADER)
            begun = True
        row = rows[key]
        settings = "; ".join(f"{name}={cell_text(value)}" for name, value in row.hyperparameters.items())
        for reply in replies:
            asked = reply.question
            near = known.get((asked.expected, reply.said))
            texts = (asked.test, asked.sample, asked.turn, asked.prompt, asked.expected, reply.said or "")
            line = (
                row.testenv,
                row.algorithm,
                settings,
                result.case.seed,
                reply.round,
                *texts,
                "" if near is None else f"{near:.4f}",
            )
            writer.writerow([_plain(cell) for cell in line])
        yield stream.getvalue()


def _plain(cell: object) -> object:
    """A text that a spreadsheet would take for a formula has a ' before it."""
    if not isinstance(cell, str):
        return cell
    said = cell.replace("\r", "\n")  # the writer leaves a lone carriage return without quotes
    return f"'{said}" if said.startswith(("=", "+", "-", "@", "\t", "\n")) else said
