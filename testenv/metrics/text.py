"""Scores of texts, reply by reply: overlap of words and letters, equality, coverage.

A pair is a reference reply and the reply to the same turn of the same conversation; each pair counts once. If there are
several right replies, a reply is compared with each, and the best of these scores counts. A missing or blank reply
scores 0, and so does a reply without any letter in common with the reference: failures are never left out. Every score
comes with parts: by turn, if there are several, and by topic, if samples have one.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat, zip_longest
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ianvs.base.errors import InvalidValue
from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.packed_replies import Replies
from ianvs.testenv.data_types.dialogues import normalised
from ianvs.testenv.metrics.letter_counts import LetterCounter, cosine

Array = NDArray[np.float64]
Parts = dict[str, float]

# A word is a run of letters and digits; in scripts without blanks between words, each sign is a word.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
)


def turns_of(record: EvaluationRecord) -> Iterator[tuple[int, int, tuple[str, ...], str | None]]:
    """Yield (conversation, turn, references, reply or None) of every turn in order.

    Conversations and turns count from 0.

    References are all right replies to a turn; the one used in training comes first. A label that is a text counts as a
    conversation of one turn. Raises ValueError for labels that are no texts, and if the numbers of conversations or
    turns don't agree.
    """
    truth, replies = record.y_true, record.y_pred
    if truth is None or replies is None:
        raise InvalidValue("replies are compared one by one, and only a confusion matrix is stored", "unfit-metric")
    if len(truth) != len(replies):
        raise InvalidValue(
            f"there are {len(truth)} conversations to answer, and answers to {len(replies)}", "unfit-metric"
        )
    further = truth.references if isinstance(truth, Replies) else repeat(())
    for index, (wanted, given, more) in enumerate(zip(truth, replies, further, strict=False)):
        expected = _texts(wanted, index)
        answers = [] if given is None else _texts(given, index)
        if not expected and answers:
            raise InvalidValue(
                f"sample {index} is a plain text without a user's turn: perplexity is of such", "unfit-metric"
            )
        if len(answers) > len(expected):
            raise InvalidValue(
                f"conversation {index} has {len(expected)} turns and {len(answers)} replies", "unfit-metric"
            )
        for turn, (reference, reply) in enumerate(zip_longest(expected, answers)):
            yield index, turn, (reference or "", *(more if turn == len(expected) - 1 else ())), reply


def by_pair(name: str, record: EvaluationRecord, score: Callable[[str, str], float]) -> Parts:
    """Return the parts of the metric `name`: the mean of a score over all replies; a missing or blank reply has 0.

    Of several references, the one with the highest score counts. score: maps (reply, reference) to a number of 0 or
    more.
    """

    def rows(record: EvaluationRecord) -> Array:
        places, scores = list[tuple[int, int]](), list[float]()
        for conversation, turn, references, reply in turns_of(record):
            places.append((conversation, turn))
            scores.append(max(score(reply, reference) for reference in references) if is_answer(reply) else 0.0)
        return in_rows(places, scores, count_of(record))

    return in_parts(name, record.by_sample(name, rows), record.columns.get("topics"))


def is_answer(reply: str | None) -> TypeGuard[str]:
    """Return whether there is a reply that is not blank."""
    return reply is not None and bool(reply.strip())


def count_of(record: EvaluationRecord) -> int:
    """Return the number of conversations."""
    return 0 if record.y_true is None else len(record.y_true)


def in_rows(places: Sequence[tuple[int, int]], values: ArrayLike, count: int = 0) -> Array:
    """Return `values` as (N, turns, ...), one for each (conversation, turn) of `places`.

    Nan where there is no such turn.

    count: N, if the last conversations may have no turn.
    """
    values = np.asarray(values, dtype=np.float64)
    at = np.array(places, dtype=np.int64).reshape(-1, 2)
    last, turns = tuple(at.max(axis=0) + 1) if len(at) else (0, 0)
    shape = (max(count, last), turns)
    rows = np.full((*shape, *values.shape[1:]), np.nan)
    rows[at[:, 0], at[:, 1]] = values
    return rows


def in_parts(name: str, rows: Array, topics: NDArray[np.str_] | None = None) -> Parts:
    """Return the mean of all pairs under `name`, then the means of "turn_1", "turn_2", ... and of "topic <name>".

    rows: (N, turns), nan where there is no such turn.
    """
    scored = ~np.isnan(rows)
    scores, (samples, turns) = rows[scored], np.nonzero(scored)
    parts: Parts = {name: float(scores.mean()) if len(scores) else float("nan")}
    numbers = np.unique(turns).tolist()
    if len(numbers) > 1:
        parts |= {f"turn_{number + 1}": float(scores[turns == number].mean()) for number in numbers}
    if topics is not None:
        topic_of = topics[samples]
        parts |= {
            f"topic {topic}": float(scores[topic_of == topic].mean())
            for topic in dict.fromkeys(topic_of.tolist())
            if topic
        }
    return parts


def words(text: str) -> list[str]:
    """Return the words of a text after `normalised`, without punctuation."""
    return _WORD.findall(normalised(text))


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, in O(len(first) len(second) / word size) steps.

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

    counter = LetterCounter()

    def likeness(*pair: str) -> float:
        return cosine(*map(counter.counts, map(normalised, pair)))

    return by_pair("lexical_similarity", record, likeness)


@score_metric(
    "reply_exact_match",
    aliases=("EM",),
    formula="share of replies that equal their reference after NFKC, folding of case and joining of blanks",
    source="Rajpurkar et al. 2016, section 6.1; articles and punctuation are kept here",
)
def reply_exact_match(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of replies that equal their reference but for case and blanks; part of it is not enough."""
    return by_pair("reply_exact_match", record, lambda reply, right: float(normalised(reply) == normalised(right)))


@score_metric(
    "reply_coverage",
    formula="|{replies that are there and not blank}| / |{turns of users}|",
    source="plain count; such replies are left out in Continual-NExT",
)
def reply_coverage(record: EvaluationRecord) -> Mapping[str, float]:
    """Share of the turns that were answered at all."""
    return by_pair("reply_coverage", record, lambda *pair: 1.0)


def _texts(value: object, index: int) -> list[str | None]:
    if isinstance(value, str):
        return [str(value)]
    if not isinstance(value, list | tuple) or any(text is not None and not isinstance(text, str) for text in value):
        raise InvalidValue(
            f"sample {index} holds {value!r}; this score is of texts, or of lists of replies", "unfit-metric"
        )
    return list(value)
