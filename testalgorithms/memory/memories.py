"""Memories, modules of type `memory`: store feedback, and retrieve the part that may help with a question."""

import json
import math
import re
from array import array
from collections import Counter
from pathlib import Path

import numpy as np

from ianvs.base.errors import PluginError, require_known

Pair = tuple[str, str]  # a question and the answer to it
_CHOICES = re.compile(r"(.*?)\s*Choose from: (.*)", re.DOTALL)
_SUM = re.compile(r"(\d+) (\w+) (\d+)")
_MOST = 9  # largest factor in an operation


def parted(question: str) -> tuple[str, list[str]]:
    """Return (the question, the answers to choose from; none if it is open)."""
    match = _CHOICES.fullmatch(question)
    return (match[1], match[2].split("; ")) if match else (question, [])


def in_pairs(feedback) -> list[tuple[str, str, bool]]:
    """Convert feedback to (question, answer, whether it is correct); choices are removed from the question."""
    questions = [parted(str(question))[0] for question in feedback.x]
    if feedback.kind == "label":
        return [(question, str(label), True) for question, label in zip(questions, feedback.labels, strict=True)]
    require_readable(feedback=feedback.kind)
    right = feedback.correct if feedback.kind == "correctness" else feedback.scores >= 1
    return [
        (question, str(answer), bool(ok))
        for question, answer, ok in zip(questions, feedback.answers, right, strict=True)
    ]


def require_readable(*, kind: str = "text", feedback: str):
    """Raise PluginError for an exam whose questions or feedback these memories can't read."""
    if kind != "text":
        raise PluginError(
            f"these memories read questions of one string each, but the exam's data type is {kind}.",
            code="refused-arguments",
        )
    if feedback == "text":
        raise PluginError(
            "these memories can't read feedback as text. Set `feedback: label`, `correctness` or "
            "`score` in the testenv.",
            code="refused-arguments",
        )


class History:
    """Stores all feedback in order. Subclasses define what is retrieved.

    last: number of newest entries to retrieve; 0: all.
    """

    def __init__(self, *, last: int = 0):
        self.last = last
        self.reset()

    def reset(self):
        self.notes = []  # or a dict that JSON can represent

    def check_exam(self, *, kind, feedback):
        require_readable(kind=kind, feedback=feedback)

    def write(self, feedback):
        for question, answer, right in in_pairs(feedback):
            (self.keep if right else self.drop)(question, answer)

    def read(self, data) -> list[list[Pair]]:
        """Return for each question pairs of (question, answer), the most relevant first; for a history, the newest."""
        return [self.find(parted(str(question))[0]) for question in data.x]

    def key(self, question: str) -> str:
        """Return the key under which answers to the question are stored."""
        return question

    def keep(self, question: str, answer: str):
        """Store a correct answer."""
        self.notes.append((question, answer))

    def drop(self, question: str, answer: str):
        """Remove an answer that is wrong, or wrong by now."""
        self.notes = [pair for pair in self.notes if tuple(pair) != (question, answer)]

    def find(self, question: str) -> list[Pair]:
        return [tuple(pair) for pair in self.notes[-self.last :][::-1]]

    def save(self, path):
        Path(path).write_text(json.dumps(self.notes), encoding="utf-8")

    def load(self, path):
        self.notes = json.loads(Path(path).read_text(encoding="utf-8"))

    def __len__(self):
        return len(self.notes)


class MostFrequent(History):
    """Counts correct answers by heading (the text before the first colon); among equals, the latest is retrieved.

    This is the baseline of a classifier that sees only the heading.
    """

    def __init__(self):
        super().__init__()

    def reset(self):
        self.notes = {}

    def key(self, question: str) -> str:
        return question.partition(":")[0] if ":" in question else ""

    def keep(self, question: str, answer: str):
        counts = self.notes.setdefault(self.key(question), {})
        counts[answer] = counts.pop(answer, 0) + 1  # moves the latest answer to the end

    def drop(self, question: str, answer: str):
        pass

    def find(self, question: str) -> list[Pair]:
        counts = self.notes.get(self.key(question), {})
        order = {answer: (count, place) for place, (answer, count) in enumerate(counts.items())}
        return [(question, answer) for answer in sorted(order, key=order.__getitem__, reverse=True)]


class SameWording(History):
    """Retrieves the latest answer to a question with the same wording."""

    def __init__(self):
        super().__init__()

    def reset(self):
        self.notes = {}

    def keep(self, question: str, answer: str):
        self.notes[self.key(question)] = [(question, answer)]

    def drop(self, question: str, answer: str):
        if any(noted == answer for _, noted in self.notes.get(self.key(question), [])):
            del self.notes[self.key(question)]

    def find(self, question: str) -> list[Pair]:
        return [tuple(pair) for pair in self.notes.get(self.key(question), [])]


class KeyedNotes(SameWording):
    """Keeps a note for the subject of a question in any wording: its names, which are the words with a capital letter.

    A new answer overwrites the old one. Results of an operation ("3 marn 5") are all noted, and the next result is that
    of the first p a + q b that agrees with them, p and q from 0 to 9.
    """

    def key(self, question: str) -> str:
        return question if _SUM.search(question) else " ".join(re.findall(r"\b[A-Z]\w*", question))

    def keep(self, question: str, answer: str):
        if (match := _SUM.search(question)) and re.fullmatch(r"\d+", answer):
            self.notes.setdefault(match[2], []).append((question, answer))
        else:
            super().keep(question, answer)

    def find(self, question: str) -> list[Pair]:
        match = _SUM.search(question)
        noted = self.notes.get(match[2], []) if match else []
        if match is None or not noted:
            return super().find(question)
        sums = [(_SUM.search(before), int(result)) for before, result in noted]
        results = [(int(sum_[1]), int(sum_[3]), result) for sum_, result in sums]
        for p in range(_MOST + 1):
            for q in range(_MOST + 1):
                if all(p * a + q * b == result for a, b, result in results):
                    return [(question, str(p * int(match[1]) + q * int(match[3])))]
        return []


class Nearest(History):
    """The `k` questions that are nearest by `similarities`. of_equals: which goes first, "newest" or "oldest"."""

    def __init__(self, *, k: int = 1, of_equals: str = "newest"):
        super().__init__()
        require_known("of_equals", of_equals, ("newest", "oldest"))
        if k < 1:
            raise PluginError(f"k is {k}; it must be at least 1.", code="out-of-range")
        self.k, self.of_equals = k, of_equals

    def similarities(self, question: str) -> list[float]:
        """Return the similarity to each stored question; 0 is nothing in common."""
        raise NotImplementedError

    def find(self, question: str) -> list[Pair]:
        near = self.similarities(question)
        places = range(len(near)) if self.of_equals == "oldest" else range(len(near) - 1, -1, -1)
        best = sorted((i for i in places if near[i] > 0), key=near.__getitem__, reverse=True)
        return [tuple(self.notes[i]) for i in best[: self.k]]


class NearestByWords(Nearest):
    """Cosine of TF-IDF vectors: a word counts tf (1 + ln((1 + n) / (1 + df))), of n questions df of which have it."""

    def __init__(self, *, k: int = 1, of_equals: str = "newest"):
        super().__init__(k=k, of_equals=of_equals)

    def reset(self):
        super().reset()
        self._indexed = None

    def similarities(self, question: str) -> list[float]:
        self._index()
        rows, words, often = (np.frombuffer(column, np.int64) for column in (self._rows, self._columns, self._often))
        documents = np.bincount(words, minlength=len(self._words))
        weights = 1 + np.log((1 + len(self.notes)) / (1 + documents))
        query, length = np.zeros(len(weights)), 0.0
        for word, n in _counted(question).items():
            place = self._words.get(word)
            value = n * (1 + math.log(1 + len(self.notes)) if place is None else weights[place])
            length += value**2
            if place is not None:
                query[place] = value
        values = often * weights[words]
        near = np.bincount(rows, values * query[words], len(self.notes))
        lengths = np.sqrt(np.bincount(rows, values**2, len(self.notes)) * length)
        return (near / np.where(lengths, lengths, 1.0)).tolist()

    def _index(self):
        """Update the index with the questions stored since the last one; (row, word, count) are parallel lists."""
        if self._indexed is not self.notes:  # after a drop or a load
            self._indexed, self._words, self._done = self.notes, {}, 0
            self._rows, self._columns, self._often = array("q"), array("q"), array("q")
        for row in range(self._done, len(self.notes)):
            for word, n in _counted(self.notes[row][0]).items():
                self._rows.append(row)
                self._columns.append(self._words.setdefault(word, len(self._words)))
                self._often.append(n)
        self._done = len(self.notes)


def _counted(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text.lower()))
