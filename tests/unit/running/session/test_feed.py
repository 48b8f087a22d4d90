"""What a case is handed: of a stream, against cutting one long list; of rounds that share samples, each sample once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.exam.data.dataset import Dataset, Samples
from ianvs.exam.data.listing import column
from ianvs.exam.data.parts import columns_of
from ianvs.exam.scenarios.exam import Exam, Round, Rules, Stream
from ianvs.running.session.feed import DataFeed, merge_parts
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
        assert feed.samples_until(k) == len(handed)
        assert len(handed) >= sum(sizes[:k])
    assert handed == list(range(sum(sizes)))


def test_the_chunks_of_a_block_are_handed_over_as_one_part_for_each_round() -> None:
    feed = DataFeed(stream_of([7, 5, 9], 4, withheld=0.3), 1.0, 0, None)
    parts = [part for k in (1, 2, 3) for chunk in feed.chunks(k) for part in chunk.parts]
    fewer = merge_parts(parts)
    assert len(fewer) < len(parts)
    for name, values in columns_of(parts).items():
        np.testing.assert_array_equal(columns_of(fewer)[name].gather(), values.gather())


def test_work_of_cutting_a_stream_grows_as_its_length() -> None:
    feed = DataFeed(stream_of([1000] * 50, 10), 1.0, 0, None)
    assert sum(len(feed.chunks(k)) for k in range(1, 51)) == 5000
    assert [feed.samples_until(k) for k in (1, 50)] == [1000, 50_000]
    short, long = stream_of([1000] * 5, 10), stream_of([1000] * 50, 10)
    assert calls_of(lambda: DataFeed(long, 1.0, 0, None)) < 12 * calls_of(lambda: DataFeed(short, 1.0, 0, None))


HELD = ((0,), (0, 1), (1, 2), (2,), (0, 3))
"""The classes that each of five samples has; the rounds teach 0 and 1, then 2, then 3 and 1."""
ROUNDS = ((0, 1), (2,), (3, 1))


def samples_of(kind: str) -> Samples:
    """Their labels: a mask with a pixel of each class beside one of class 0, or boxes or a bit of each class."""
    if kind == "segmentation":
        y = np.array([[[0, *held, *[0] * (3 - len(held))]] for held in HELD], np.uint8)
    elif kind == "multilabel":
        y = np.array([[c in held for c in range(len(CLASSES))] for held in HELD], np.uint8)
    else:
        y = column([{"boxes": [[0, 0, c + 1, 1] for c in held], "labels": list(held)} for held in HELD])
    return Samples(np.arange(5, dtype=np.uint8)[:, None, None, None], y, np.arange(5).astype(str))


def classes_of(label: object) -> set[int]:
    if isinstance(label, dict):
        return {*np.asarray(label["labels"]).tolist()}
    values = np.asarray(label)
    return {*(np.flatnonzero(values) if values.ndim == 1 else np.unique(values)).tolist()}


@pytest.mark.parametrize("kind", ["segmentation", "multilabel", "detection"])
def test_bounds_get_a_sample_of_several_rounds_once_with_its_labels_of_all_of_them(kind: str) -> None:
    samples, masks = samples_of(kind), kind == "segmentation"
    background = 0 if masks else None
    rounds = tuple(
        Round(str(k), np.array([i for i, held in enumerate(HELD) if {*held} & {*classes}]), classes, limited=True)
        for k, classes in enumerate(ROUNDS)
    )
    rounds = tuple(replace(one, background=background) for one in rounds)
    rules = Rules("class-incremental", True, False, "seen")
    feed = DataFeed(Exam(Dataset("d", kind, samples, samples, CLASSES, "f"), rounds, (), rules), 1.0, 0, None)
    for last in (1, 2, 3):
        taught = {c for classes in ROUNDS[:last] for c in classes}
        expected = {str(i): {*held} & taught for i, held in enumerate(HELD) if {*held} & taught}
        for views in (feed.past_rounds(last), [feed.rounds(1, last)]):
            columns = [view.columns for view in views]
            ids = [name for one in columns for name in one["ids"].gather()]
            labels = [label for one in columns for label in one["y"].gather()]
            seen = {name: classes_of(label) - {background} for name, label in zip(ids, labels, strict=True)}
            assert len(ids) == len(seen)
            assert seen == {name: held - {background} for name, held in expected.items()}
        past = feed.past_rounds(last)
        assert len(past) == last
        assert {*past[-1].columns["ids"].gather()} == {*rounds[last - 1].train.astype(str)}
