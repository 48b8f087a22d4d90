"""What a case is handed of a stream, against cutting one long list."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ianvs.exam.data.dataset import Dataset, Samples
from ianvs.exam.data.parts import columns_of
from ianvs.exam.scenarios.exam import Exam, Round, Rules, Stream
from ianvs.running.session.feed import DataFeed, joined
from tests.call_counts import calls_of

CLASSES = tuple("abcdef")


def stream_of(sizes: list[int], batch: int, *, withheld: float = 0.0) -> Exam:
    """Rounds of `sizes` samples each, in the order of their positions."""
    draw = np.random.default_rng(sum(sizes))
    count = sum(sizes)
    samples = Samples(
        np.zeros((count, 1), np.float32), draw.integers(0, len(CLASSES), count), np.arange(count).astype(str)
    )
    rounds, start = [], 0
    for number, size in enumerate(sizes):
        train = np.arange(start, start + size)
        labels = np.where(draw.random(size) < withheld, -1, samples.y[train])
        rounds.append(Round(str(number), train, (), labels=labels))
        start += size
    rules = Rules("task-free", False, False, "all", boundaries=False)
    stream = Stream(batch, shuffled=False)
    return Exam(Dataset("d", "classification", samples, samples, CLASSES, "f"), tuple(rounds), (), rules, stream)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(1, 14))
def test_a_stream_is_one_list_cut_into_equal_chunks(sizes: list[int], batch: int) -> None:
    exam = stream_of(sizes, batch, withheld=0.3)
    feed = DataFeed(exam, 1.0, 0, None)
    round_of = [k for k, size in enumerate(sizes, start=1) for _ in range(size)]
    told = np.concatenate([round_.labels for round_ in exam.rounds if round_.labels is not None])
    handed = []
    for k in range(1, len(sizes) + 1):
        for chunk in feed.chunks(k):
            here = np.concatenate([part.positions for part in chunk.parts])
            handed += here.tolist()
            assert here.tolist() == list(range(chunk.samples - chunk.size, chunk.samples))
            assert round_of[here[0]] == k
            assert chunk.begun == round_of[here[-1]]
            assert chunk.ended == sum(end <= chunk.samples for end in np.cumsum(sizes))
            assert chunk.classes == tuple(sorted({*told[here].tolist()} - {-1}))
        assert feed.arrived(k) == len(handed)
        assert len(handed) >= sum(sizes[:k])
    assert handed == list(range(sum(sizes)))


def test_the_chunks_of_a_block_are_handed_over_as_one_part_for_each_round() -> None:
    feed = DataFeed(stream_of([7, 5, 9], 4, withheld=0.3), 1.0, 0, None)
    parts = [part for k in (1, 2, 3) for chunk in feed.chunks(k) for part in chunk.parts]
    fewer = joined(parts)
    assert len(fewer) < len(parts)
    for name, column in columns_of(parts).items():
        np.testing.assert_array_equal(columns_of(fewer)[name].gather(), column.gather())


def test_work_of_cutting_a_stream_grows_as_its_length() -> None:
    feed = DataFeed(stream_of([1000] * 50, 10), 1.0, 0, None)
    assert sum(len(feed.chunks(k)) for k in range(1, 51)) == 5000
    assert [feed.arrived(k) for k in (1, 50)] == [1000, 50_000]
    short, long = stream_of([1000] * 5, 10), stream_of([1000] * 50, 10)
    assert calls_of(lambda: DataFeed(long, 1.0, 0, None)) < 12 * calls_of(lambda: DataFeed(short, 1.0, 0, None))
