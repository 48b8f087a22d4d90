"""Memories that choose: what they are expected to hold, by count and by chance."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ianvs.authoring import BiasedReservoirMemory, ClassBalancedMemory, PerRoundMemory, ReservoirMemory
from tests.errors import errors_of


def generator(seed):
    return torch.Generator().manual_seed(seed)


def bucket(i, size):
    """Samples that know their bucket, and each its own number."""
    return torch.arange(i * size, (i + 1) * size).float()[:, None], torch.full((size,), i)


def held(formula, alpha, buckets, size, trials):
    """(buckets,) how many samples of each are in memory at the end, over all trials."""
    counts, draws = np.zeros(buckets), generator(0)
    for _ in range(trials):
        memory = BiasedReservoirMemory(size, formula, alpha)
        for i in range(buckets):
            memory.add(*bucket(i, size), draws)
        assert len(memory) == size == len(set(memory.x[:, 0].tolist()))
        counts += np.bincount(memory.y, minlength=buckets)
    return counts


def assert_shares(counts, shares, trials, size):
    """Replacement without repetition varies less than the binomial bound that is used here."""
    n = trials * size
    for count, share in zip(counts, shares, strict=True):
        low, high = binom.interval(1 - 1e-4, n, share)
        assert low <= count <= high, (counts / n, shares)


def test_one_over_n_gives_every_bucket_the_same_share():
    counts = held("alpha_over_n", 1.0, buckets=5, size=20, trials=200)
    assert_shares(counts, [1 / 5] * 5, 200, 20)


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_a_constant_gives_shares_that_decay_geometrically(p):
    n = 4  # the last bucket, counted from 0
    counts = held("constant", p, buckets=n + 1, size=20, trials=200)
    assert_shares(counts, [(1 - p) ** n] + [p * (1 - p) ** (n - i) for i in range(1, n + 1)], 200, 20)


def test_alpha_above_one_favours_recent_data_by_the_product_of_what_survives():
    alpha, n = 2.0, 4
    p = [min(1.0, alpha / (i + 1)) for i in range(n + 1)]
    shares = [p[i] * np.prod([1 - p[j] for j in range(i + 1, n + 1)]) for i in range(n + 1)]
    assert_shares(held("alpha_over_n", alpha, n + 1, 20, 200), shares, 200, 20)
    assert shares == sorted(shares)


def test_a_constant_of_one_keeps_the_newest_bucket_alone():
    assert held("constant", 1.0, buckets=3, size=10, trials=1).tolist() == [0, 0, 10]


def test_a_chance_above_one_is_one():
    memory = BiasedReservoirMemory(10, "alpha_over_n", 50.0)
    assert memory.probability == 1.0
    for i in range(3):
        memory.add(*bucket(i, 10), generator(i))
    assert set(memory.y.tolist()) == {2}


def test_a_bucket_larger_than_the_memory_is_cut_first():
    counts, draws = np.zeros(3), generator(4)
    for _ in range(200):
        memory = BiasedReservoirMemory(10, "alpha_over_n", 1.0)
        for i in range(3):
            memory.add(*bucket(i, 50), draws)
        counts += np.bincount(memory.y, minlength=3)
    assert_shares(counts, [1 / 3] * 3, 200, 10)


@given(
    st.integers(0, 12),
    st.lists(st.integers(0, 20), max_size=5),
    st.sampled_from(["alpha_over_n", "constant"]),
    st.floats(0, 3),
)
def test_it_is_full_as_soon_as_it_can_be_and_holds_no_sample_twice(capacity, sizes, formula, alpha):
    memory, start = BiasedReservoirMemory(capacity, formula, alpha), 0
    for k, size in enumerate(sizes):
        numbers = torch.arange(start, start + size)
        memory.add(numbers.float()[:, None], numbers, generator(k))
        start += size
        assert len(memory) == min(capacity, start)
    assert memory.seen == start
    assert memory.y.tolist() == sorted(set(memory.y.tolist()))
    assert memory.x[:, 0].tolist() == memory.y.tolist() if len(memory) else True


def test_unknown_formulas_and_negative_alphas_are_refused():
    assert errors_of(BiasedReservoirMemory, 10, "alpha_over_m") == [("invalid-choice", "")]
    assert errors_of(BiasedReservoirMemory, 10, "constant", -0.1) == [("out-of-range", "")]


def naive_gdumb(capacity, labels):
    """Counts by class, one sample at a time, by algorithm 1 of the paper."""
    counts = Counter()
    for label in labels:
        counts.setdefault(label, 0)
        if counts[label] < capacity / len(counts) or counts[label] == 0:
            if sum(counts.values()) >= capacity:
                counts[counts.most_common(1)[0][0]] -= 1
            counts[label] += 1
    return counts


@given(st.integers(6, 30), st.lists(st.integers(0, 5), max_size=120), st.integers(1, 4))
def test_the_balanced_memory_counts_as_the_papers_algorithm_does(capacity, labels, parts):
    memory = ClassBalancedMemory(capacity)
    for k, some in enumerate(np.array_split(np.array(labels, dtype=np.int64), parts)):
        memory.add(torch.from_numpy(some).float()[:, None], torch.from_numpy(some), generator(k))
    assert sorted(Counter(memory.y.tolist()).values()) == sorted(c for c in naive_gdumb(capacity, labels).values() if c)
    assert memory.x.flatten().tolist() == memory.y.tolist()


def test_classes_that_come_one_after_the_other_end_up_with_equal_counts():
    memory = ClassBalancedMemory(60)
    for c in range(6):
        memory.add(torch.zeros(100, 1), torch.full((100,), c), generator(c))
        counts = Counter(memory.y.tolist())
        assert set(counts) == set(range(c + 1))
        assert max(counts.values()) - min(counts.values()) <= 1
        assert len(memory) == 60
    assert memory.seen == 600


def test_a_memory_per_round_keeps_so_many_of_each():
    memory = PerRoundMemory(4)
    for i, size in enumerate((10, 3, 6)):
        memory.add(*bucket(i, size), generator(i))
    assert [part.y.tolist() for part in memory.parts] == [[0] * 4, [1] * 3, [2] * 4]
    assert len(memory) == 11
    assert memory.nbytes == 11 * (4 + 8)


@pytest.mark.parametrize("make", [lambda: BiasedReservoirMemory(7, alpha=2.0), lambda: ClassBalancedMemory(7)])
def test_a_restored_memory_goes_on_as_the_first_would(make):
    first, second = make(), make()
    for i in range(3):
        first.add(*bucket(i, 9), generator(i))
    second.restore(first.state())
    for memory in (first, second):
        memory.add(*bucket(3, 9), generator(3))
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.y, second.y)


def test_further_columns_stay_with_their_samples():
    memory = ReservoirMemory(5)
    for i in range(4):
        x, y = bucket(i, 6)
        memory.add(x, y, generator(i), 10 * x)
    x, _, more = memory.sample(5, generator(0))
    assert torch.equal(more, 10 * x)
    assert memory.nbytes == 5 * (4 + 8 + 4)
