"""A reservoir: a uniform subset of everything that came by, of at most its capacity."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ianvs.authoring import ReplayLearner, ReservoirMemory
from ianvs.authoring.randomness import torch_generator
from tests.errors import errors_of

ASKED = (3, 8, 1, 50, 12)  # old samples, in the steps of an epoch


def generator(seed):
    return torch.Generator().manual_seed(seed)


def numbered(start, stop):
    """Samples that can be told apart: x = [i, 10 i], y = i."""
    i = torch.arange(start, stop)
    return torch.stack([i, 10 * i], 1).float(), i


@given(st.integers(0, 12), st.lists(st.integers(0, 9), max_size=5))
def test_it_holds_as_many_as_it_may_each_once_with_its_own_label(capacity, sizes):
    memory = ReservoirMemory(capacity)
    start = 0
    for k, size in enumerate(sizes):
        memory.add(*numbered(start, start + size), generator(k))
        start += size
    assert len(memory) == min(capacity, start) == len(memory.y)
    assert memory.seen == start
    assert memory.y.tolist() == sorted(set(memory.y.tolist()))  # no sample twice, in the order of arrival
    if len(memory):
        assert torch.equal(memory.x, torch.stack([memory.y, 10 * memory.y], 1).float())


def test_the_same_streams_keep_the_same_samples():
    def filled():
        memory = ReservoirMemory(5)
        for k in range(3):
            memory.add(*numbered(10 * k, 10 * k + 10), generator(k))
        return memory

    assert torch.equal(filled().y, filled().y)


def test_drawing_gives_different_samples_and_at_most_all_of_them():
    memory = ReservoirMemory(10)
    memory.add(*numbered(0, 10), generator(0))
    x, y = memory.sample(4, generator(1))
    assert len(set(y.tolist())) == 4
    assert torch.equal(x[:, 0], y.float())
    assert sorted(memory.sample(99, generator(1))[1].tolist()) == list(range(10))


def test_its_bytes_are_those_of_samples_and_labels():
    memory = ReservoirMemory(4)
    assert (len(memory), memory.nbytes) == (0, 0)
    pictures = np.zeros((9, 3, 8, 8), np.uint8)
    memory.add(pictures, np.arange(9), generator(0))
    assert memory.nbytes == 4 * (3 * 8 * 8 + 8)
    assert memory.x.dtype == torch.uint8


def test_a_restored_memory_goes_on_as_the_first_would():
    first, second = ReservoirMemory(5), ReservoirMemory(5)
    first.add(*numbered(0, 20), generator(0))
    second.restore(first.state())
    for memory in (first, second):
        memory.add(*numbered(20, 40), generator(1))
    assert torch.equal(first.y, second.y)
    assert first.seen == second.seen == 40


def test_a_negative_capacity_is_refused():
    assert errors_of(ReservoirMemory, -1) == [("out-of-range", "")]


@pytest.mark.parametrize("in_place", [False, True])
def test_a_reservoir_without_a_place_keeps_nothing_however_often_it_is_offered_something(in_place):
    memory, draws = ReservoirMemory(0, in_place=in_place), torch.Generator()
    for _ in range(3):
        memory.add(torch.ones(4, 2), torch.zeros(4, dtype=torch.int64), draws)
    assert (len(memory), memory.seen) == (0, 12)


@pytest.mark.parametrize("selection", ["reservoir", "per_round"])
def test_what_comes_back_in_a_step_is_drawn_anew_each_time_whatever_was_asked_for_before(selection):
    class Recalls(ReplayLearner):
        def before_round(self, data):
            super().before_round(data)
            self.before, self.found = self.memory.at(torch.arange(len(self.memory))) if data.round > 1 else (), []

        def after_step(self, x, y, epoch, step):
            if self.before:
                self.found.append(self.recall(ASKED[step])[0])

    learner = Recalls(epochs=4, batch_size=8, capacity=20, selection=selection)
    for round_ in (1, 2):
        x = torch.rand(40, 4, generator=generator(round_))
        data = SimpleNamespace(tensors=lambda device, x=x: (x, torch.arange(40) % 2))
        learner.train(data, num_classes=2, round=round_, classes_seen=(0, 1), seed=7)
    draws, (kept, _) = torch_generator(7, 2, "replay"), learner.before
    expected = [kept[torch.randperm(20, generator=draws)[:n]] for _ in range(4) for n in ASKED]
    assert len(learner.found) == len(expected)
    assert all(torch.equal(found, wanted) for found, wanted in zip(learner.found, expected, strict=True))
