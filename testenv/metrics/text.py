"""Scores of texts, reply by reply: overlap of words and of letters, equality, coverage.

A pair is a reference reply and the reply to the same turn of the same conversation; each counts once. A reply that is
missing or blank scores 0, and so does one to which no letter of the reference corresponds: failures are never left
out. Every score comes with its parts: by turn, where there are several, and by topic, where samples have one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.testenv.metrics.gathering import defined_in

__all__ = ["TEXT_SCORES", "Pairs", "in_parts", "lcs_length", "normalised", "pairs_of", "words"]

# A word is a run of letters and digits; of scripts that put no blanks between words, each sign is one.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
)
_LETTERS = (2, 4)  # shortest and longest run of letters that lexical_similarity counts


@dataclass(frozen=True)
class Pairs:
    """P pairs. replies[p]: None where it is missing. turns[p] counts from 1; topics[p] is "" where it isn't known."""

    references: tuple[str, ...]
    replies: tuple[str | None, ...]
    turns: NDArray[np.int64]
    topics: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.references)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """(P,) whether there is a reply, and it says something."""
        return np.array([reply is not None and bool(reply.strip()) for reply in self.replies], dtype=bool)


def pairs_of(record: EvaluationRecord) -> Pairs:
    """Every turn of every conversation, in order; a label that is a text counts as a conversation of one turn.

    Raises ValueError for labels that are no texts, and where the numbers of conversations or turns don't agree.
    """
    truth, said = record.y_true, record.y_pred
    if truth is None or said is None:
        raise ValueError("replies are compared one by one, and only a confusion matrix is stored")
    if len(truth) != len(said):
        raise ValueError(f"there are {len(truth)} conversations to answer, and answers to {len(said)}")
    references: list[str] = []
    replies: list[str | None] = []
    turns: list[int] = []
    topics: list[str] = []
    for index, (wanted, given) in enumerate(zip(truth, said, strict=True)):
        expected = _texts(wanted, index)
        answers = [] if given is None else _texts(given, index)
        if len(answers) > len(expected):
            raise ValueError(f"conversation {index} has {len(expected)} turns and {len(answers)} replies")
        references += [text or "" for text in expected]
        replies += [*answers, *[None] * (len(expected) - len(answers))]
        turns += range(1, len(expected) + 1)
        topics += ["" if record.topics is None else str(record.topics[index])] * len(expected)
    return Pairs(tuple(references), tuple(replies), np.array(turns, dtype=np.int64), tuple(topics))


def in_parts(name: str, scores: NDArray[np.float64], pairs: Pairs) -> dict[str, float]:
    """The mean of all pairs under `name`, then the means of "turn_1", "turn_2", ... and of "topic <name>"."""
    parts = {name: float(scores.mean()) if len(scores) else float("nan")}
    numbers = np.unique(pairs.turns).tolist()
    if len(numbers) > 1:
        parts |= {f"turn_{number}": float(scores[pairs.turns == number].mean()) for number in numbers}
    topics = np.array(pairs.topics, dtype=str)
    for topic in dict.fromkeys(pairs.topics):
        if topic:
            parts[f"topic {topic}"] = float(scores[topics == topic].mean())
    return parts


def normalised(text: str) -> str:
    """Compatible forms of a letter made one (NFKC), case folded, blanks at the ends gone and those between made one."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def words(text: str) -> list[str]:
    """The words of a text after `normalised`; punctuation doesn't count."""
    return _WORD.findall(normalised(text))


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, in O(len(first) len(second) / word size) steps.

    Bit i of `row` is 0 where the length grows from first[:i] to first[:i + 1] (Hyyrö 2004, "Bit-parallel LCS-length
    computation revisited").
    """
    places: dict[str, int] = {}
    for index, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << index
    full = (1 << len(first)) - 1
    row = full
    for word in second:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & full
    return len(first) - row.bit_count()


@score_metric(
    "lexical_similarity",
    formula="mean over replies of cos(c(reply), c(reference)), c: counts of runs of 2 to 4 letters",
    source="letter n-gram profiles, Cavnar & Trenkle 1994",
)
def lexical_similarity(record: EvaluationRecord) -> Mapping[str, float]:
    """How near replies are to their references in spelling, 0 to 1; says nothing of meaning, and needs no encoder."""
    pairs = pairs_of(record)
    answered = np.flatnonzero(pairs.answered)
    scores = np.zeros(len(pairs))
    if len(answered):
        replies = _letter_counts([normalised(pairs.replies[p] or "") for p in answered])
        references = _letter_counts([normalised(pairs.references[p]) for p in answered])
        scores[answered] = np.asarray(replies.multiply(references).sum(axis=1)).ravel()
    return in_parts("lexical_similarity", scores, pairs)


@score_metric(
    "reply_exact_match",
    aliases=("EM",),
    formula="share of replies that equal their reference after NFKC, folding of case and joining of blanks",
    source="Rajpurkar et al. 2016, section 6.1; articles and punctuation are kept here",
)
def reply_exact_match(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of replies that equal their reference but for case and blanks; part of it is not enough."""
    return _one_by_one(
        "reply_exact_match", record, lambda reply, reference: float(normalised(reply) == normalised(reference))
    )


@score_metric(
    "ROUGE_L",
    aliases=("rougeL", "ROUGE-L"),
    formula="mean over replies of 2 P R / (P + R), P = L / |reply|, R = L / |reference|, L = |LCS| in words",
    source="Lin 2004, section 3, with beta = 1",
)
def rouge_l(record: EvaluationRecord) -> Mapping[str, float]:
    """F1 of the longest common subsequence of words of reply and reference, 0 to 1; mean over replies."""

    def f1(reply: str, reference: str) -> float:
        said, wanted = words(reply), words(reference)
        return 2 * lcs_length(said, wanted) / (len(said) + len(wanted)) if said and wanted else 0.0

    return _one_by_one("ROUGE_L", record, f1)


@score_metric(
    "reply_coverage",
    formula="|{replies that are there and not blank}| / |{turns of users}|",
    source="plain count; such replies are left out in Continual-NExT",
)
def reply_coverage(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of the turns that were answered at all."""
    pairs = pairs_of(record)
    return in_parts("reply_coverage", pairs.answered.astype(np.float64), pairs)


def _one_by_one(name: str, record: EvaluationRecord, score: Callable[[str, str], float]) -> Mapping[str, float]:
    """The parts of a metric that is `score(reply, reference)` of each pair that was answered, 0 of the others."""
    pairs = pairs_of(record)
    scores = np.zeros(len(pairs))
    for p in np.flatnonzero(pairs.answered):
        scores[p] = score(pairs.replies[p] or "", pairs.references[p])
    return in_parts(name, scores, pairs)


def _texts(value: object, index: int) -> list[str | None]:
    if isinstance(value, str):
        return [str(value)]
    if not isinstance(value, list | tuple) or any(text is not None and not isinstance(text, str) for text in value):
        raise ValueError(f"sample {index} holds {value!r}; this score is of texts, or of lists of replies")
    return list(value)


def _letter_counts(texts: Sequence[str]) -> Any:
    """(len(texts), 2**20) sparse rows of length 1: counts of runs of letters within words, hashed to columns."""
    from sklearn.feature_extraction.text import HashingVectorizer

    counter = HashingVectorizer(analyzer="char_wb", ngram_range=_LETTERS, lowercase=False, alternate_sign=False)
    return counter.transform(texts)


TEXT_SCORES = defined_in(globals(), Metric)
