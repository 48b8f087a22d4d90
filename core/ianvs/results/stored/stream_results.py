"""Reads the StreamRecord of a prequential stream from the stored rounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import RoundResult, ScoreMatrix
from ianvs.exam.metrics.stream_record import StreamRecord
from ianvs.store import CaseStore

_COLUMNS = ("scores", "chunk", "told_at", "truth", "said")


def read_stream(
    store: CaseStore,
    case_id: str,
    rounds: Sequence[RoundResult],
    stateless: NDArray[np.float64] | None,
    matrix: ScoreMatrix | None,
) -> StreamRecord | None:
    """Return the record; None for a case without a stream.

    rounds: including the untrained one. stateless: scores of the reference. matrix: of the exam's first score, for
    held-out test sets.
    """
    stored = [store.stream(case_id, round_.index) for round_ in rounds[1:]]
    if not stored or not stored[0]:
        return None
    joined = {name: _joined(stored, name) for name in stored[0] if name != "settings"}
    delay, window, start, r_max = stored[0]["settings"].tolist()
    later = rounds[1:]
    again = stored[-1].get("second")
    same = stateless is not None and len(stateless) == len(joined["scores"])
    return StreamRecord(
        joined["scores"],
        np.repeat([round_.index for round_ in later], [len(part["scores"]) for part in stored]),
        joined["chunk"],
        joined["told_at"],
        joined["truth"],
        joined["said"],
        stateless=stateless if same else None,
        topics=joined.get("topic"),
        facts=joined.get("fact"),
        delay=int(delay),
        near={int(name.removeprefix("near ")): joined[name] for name in joined if name.startswith("near ")},
        second=again,
        answer_seconds=sum(round_.answer_seconds for round_ in later),
        feedback_seconds=sum(round_.feedback_seconds for round_ in later),
        cpu_seconds=sum(round_.stream_cpu_seconds for round_ in later),
        tokens=_sum_of(later, "tokens"),
        calls=_sum_of(later, "calls"),
        held_out=_held_out(matrix),
        window=int(window),
        start=int(start),
        r_max=float(r_max),
    )


def baseline_sentences(record: StreamRecord) -> Iterator[str]:
    """Yield sentences with baselines for the predictions, independent of the learner."""
    yield f"Accuracy of the most frequent of the last labels, without looking at samples: {record.blind:.3f}."
    plain = replace(record, told_at=record.chunks + record.delay)  # even for slow learners
    if plain.revealed_facts is not None and (mask := plain.revealed_facts.knowable).any():
        yield f"{np.mean(mask):.3f} of the stream asks for what had been told, with the answer that it has, by then."


def _joined(stored: Sequence[Mapping[str, NDArray[Any]]], name: str) -> NDArray[Any]:
    return np.concatenate([part[name] for part in stored if name in part])


def _sum_of(rounds: Sequence[RoundResult], name: str) -> float | None:
    """Return the sum over rounds of a value of an author's `measured()`; None if it has none."""
    values = [round_.measures[name] for round_ in rounds if name in round_.measures]
    return sum(values) if values else None


def _held_out(matrix: ScoreMatrix | None) -> NDArray[np.float64] | None:
    if matrix is None or len(matrix.values) < 2:
        return None
    return np.asarray(matrix.values[-1] - matrix.values[0])
