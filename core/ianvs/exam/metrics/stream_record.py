"""The predictions and scores of a prequential stream, for metrics of level "stream"."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ianvs.base.former_names import former_names

_MEMORIES = (1, 5, 25, 125)  # numbers of labels that blind classifiers remember
NEVER = -1


def running(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (N,) the means of the scores so far."""
    return np.asarray(np.cumsum(scores) / np.arange(1, len(scores) + 1))


@former_names(said="answers", of_facts="revealed_facts")
@dataclass(frozen=True)
class StreamRecord:
    """N samples of a stream, in its order.

    Attributes:
        scores: (N,) the score of each prediction.
        rounds: (N,) the round of each sample, from 1.
        chunks: (N,) the chunk of each sample, from 0.
        told_at: (N,) the chunk after which the label was revealed, or NEVER.
        truth: (N,) numbers of the true labels.
        answers: (N,) numbers of the predictions, -1 for one that is right nowhere in the stream.
        stateless: (N,) scores of the same learner reset before each sample; None: it did not run.
        topics: (N,) numbers of the topics; None: the data have none.
        facts: (N,) numbers of the facts, -1 for none; None: the data have none.
        delay: Chunks between a prediction and its label.
        near: By shift, scores of copies that predicted ahead.
        second: (N,) scores of the last model on the whole stream, or None.
        answer_seconds: Of the whole stream.
        feedback_seconds: Of the whole stream.
        cpu_seconds: Of the whole stream.
        tokens: As the author counts them; None: unknown.
        calls: As the author counts them; None: unknown.
        held_out: (J,) scores of the test sets after the last round minus those before the first, or None.
        window: As in ianvs.config.spec.PrequentialSpec.
        start: As in ianvs.config.spec.PrequentialSpec.
        r_max: As in ianvs.config.spec.PrequentialSpec.
    """

    scores: NDArray[np.float64]
    rounds: NDArray[np.int64]
    chunks: NDArray[np.int64]
    told_at: NDArray[np.int64]
    truth: NDArray[np.int64]
    answers: NDArray[np.int64]
    stateless: NDArray[np.float64] | None = None
    topics: NDArray[np.int64] | None = None
    facts: NDArray[np.int64] | None = None
    delay: int = 0
    near: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)
    second: NDArray[np.float64] | None = None
    answer_seconds: float = 0.0
    feedback_seconds: float = 0.0
    cpu_seconds: float = 0.0
    tokens: float | None = None
    calls: float | None = None
    held_out: NDArray[np.float64] | None = None
    window: int = 50
    start: int = 5
    r_max: float = 1.0

    @property
    def gains(self) -> NDArray[np.float64]:
        """(N,) the gain over the stateless reference; empty if it did not run."""
        return np.empty(0) if self.stateless is None else self.scores - self.stateless

    @cached_property
    def visits(self) -> list[tuple[int, int, int]]:
        """(topic, first sample, the one after the last) of each run of samples of one topic."""
        if self.topics is None or not len(self.topics):
            return []
        bounds = [0, *(np.flatnonzero(np.diff(self.topics)) + 1).tolist(), len(self.topics)]
        return [(int(self.topics[first]), first, end) for first, end in pairwise(bounds)]

    @cached_property
    def revealed_facts(self) -> RevealedFacts | None:
        """What was revealed of the fact of each sample; None: the data have no facts."""
        return None if self.facts is None else _revealed_facts(self)

    @cached_property
    def blind(self) -> float:
        """Accuracy of the best classifier that sees no input (Hammoud et al. 2023, section 3).

        It predicts the most frequent of the last k revealed labels, of several the one revealed last, for the best k of
        1, 5, 25 and 125. It is wrong before the first label.
        """
        accuracies = [blind_accuracy(self.truth, self.chunks, self.delay, k) for k in _MEMORIES]
        return max(accuracies) if len(self.truth) else float("nan")


@dataclass(frozen=True)
class RevealedFacts:
    """What was revealed, before each sample, of the fact that it asks for, (N,) bool each.

    Attributes:
        retained: The fact was last revealed in an earlier visit, with its present answer.
        updated: It was once revealed with another answer, and last with the present one.
        changed: It had another answer in an earlier sample.
        stale: Such an earlier answer was given.
        knowable: It was revealed with its present answer.
    """

    retained: NDArray[np.bool_]
    updated: NDArray[np.bool_]
    changed: NDArray[np.bool_]
    stale: NDArray[np.bool_]
    knowable: NDArray[np.bool_]


def _revealed_facts(record: StreamRecord) -> RevealedFacts:
    count = len(record.scores)
    facts = RevealedFacts(*(np.zeros(count, bool) for _ in range(5)))
    visit = np.zeros(count, np.int64)
    for number, (_, first, end) in enumerate(record.visits):
        visit[first:end] = number
    assert record.facts is not None
    earlier: dict[
        int, list[int]
    ] = {}  # episodes by fact in the order of the stream, which is the order in which labels are revealed
    for i, fact in enumerate(record.facts.tolist()):
        if fact < 0:
            continue
        before = earlier.setdefault(fact, [])
        now = record.truth[i]
        revealed = [e for e in before if NEVER < record.told_at[e] < record.chunks[i]]
        former = {int(record.truth[e]) for e in before} - {int(now)}
        facts.changed[i] = bool(former)
        facts.stale[i] = int(record.answers[i]) in former
        if revealed:
            last = revealed[-1]
            facts.retained[i] = bool(record.truth[last] == now and visit[last] < visit[i])
            facts.updated[i] = bool(record.truth[last] == now and any(record.truth[e] != now for e in revealed))
            facts.knowable[i] = any(record.truth[e] == now for e in revealed)
        before.append(i)
    return facts


def blind_accuracy(truth: NDArray[np.int64], chunks: NDArray[np.int64], delay: int, k: int) -> float:
    """Return the share of `truth` that a classifier with a memory of `k` revealed labels predicts without input."""
    memory: deque[int] = deque()
    counts: Counter[int] = Counter()
    last: dict[int, int] = {}  # when each label was revealed last
    revealed = right = 0
    labels, steps = truth.tolist(), chunks.tolist()
    answer, asked_at = NEVER - 1, NEVER
    for label, step in zip(labels, steps, strict=True):
        while revealed < len(labels) and steps[revealed] + delay < step:
            new = labels[revealed]
            memory.append(new)
            counts[new] += 1
            last[new] = revealed
            if len(memory) > k:
                old = memory.popleft()
                counts[old] -= 1
                if not counts[old]:
                    del counts[old]
            revealed += 1
            asked_at = NEVER
        if asked_at != step:
            asked_at = step
            answer = max(counts, key=lambda candidate: (counts[candidate], last[candidate])) if counts else NEVER - 1
        right += label == answer
    return right / len(labels) if labels else float("nan")
