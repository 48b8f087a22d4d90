"""Memories in distribution: each against its textbook, one sample after the other, over thousands of streams.

Where two programs share their random draws, nobody asks whether the draws are any good. Here nothing is shared: how
often each sample stays, after which rounds, and how often any two stay together, is compared by chi-square.

Algorithm R (Vitter 1985), as in Mammoth 7ab9db9, utils/buffer.py:12-28: sample t, counted from 1, gets a place drawn
from t and is kept where that is one of the memory. The buffer of ER-ACE's authors (AML 7c92936, buffer.py:90-99; also
LibContinual a399ed4, core/model/buffer/erbuffer.py:60-65) draws the places of a whole batch from the number of samples
before it, which favours late ones: it is among the wrong samplers below.
GDumb: Prabhu et al. 2020, algorithm 1; among classes that have most the one that stands first in the memory gives way.
Its authors' code takes the first samples of each class instead (GDumb 4f412d7, src/dataloader.py:75-77).
Biased reservoir: Lin et al. 2021, as docs/methods.md has it; old samples make room at random.
"""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from ianvs.authoring import (
    BiasedReservoirMemory,
    ClassBalancedMemory,
    PerRoundMemory,
    ReplayLearner,
    ReservoirMemory,
    RoundData,
)

CAPACITY, ROUNDS = 4, (range(3), range(3, 8), range(8, 12))  # the memory overflows in the middle of the second round
STREAMS = 1000
SURE, UNLIKELY = 1e-12, 1e-3  # bounds of a wrong and of a right sampler; all draws are seeded


def features(streams):
    """(streams, features) of what was kept after each round of each: how often each sample is there after each round,
    any two together at the end, and who stays from the second round to the third."""
    counts = np.zeros((len(streams), len(ROUNDS), 12))
    for n, stream in enumerate(streams):
        for k, kept in enumerate(stream):
            for i in kept:
                counts[n, k, i] += 1
    i, j = np.triu_indices(12, 1)
    pairs, stayed = counts[:, 2, i] * counts[:, 2, j], counts[:, 1, :8] * counts[:, 2, :8]
    return np.concatenate([counts.reshape(len(streams), -1), pairs, stayed], axis=1)


def difference(a, b):
    """p-value of two arrays of features, if the same sampler made them: the squared distance of their means, in units
    of its covariance, is chi-square."""
    off = a.mean(0) - b.mean(0)
    covariance = np.cov(a.T) / len(a) + np.cov(b.T) / len(b)
    freedom = np.linalg.matrix_rank(covariance)
    # what never varies may not differ either: the little that is added makes that infinitely unlikely
    return chi2.sf(off @ np.linalg.solve(covariance + 1e-9 * np.eye(len(off)), off), freedom)


# Textbooks: functions of random numbers that give what is kept after each round.


def algorithm_r(draw, shift=1):
    places, after = [], []
    for some in ROUNDS:
        for t in some:
            place = t if t < CAPACITY else draw.integers(t + shift)
            if t < CAPACITY:
                places.append(t)
            elif place < CAPACITY:
                places[place] = t
        after.append(list(places))
    return after


def each_round(draw):
    after = []
    for some in ROUNDS:
        after.append([*(after[-1] if after else []), *draw.choice(some, 2, replace=False)])
    return after


LABELS = (0, 0, 1, 0, 1, 1, 1, 2, 2, 0, 2, 2)


def greedy(draw):
    kept, after = [], []
    for some in ROUNDS:
        classes = list(dict.fromkeys(LABELS[i] for i in kept))
        for i in some:
            own = LABELS[i]
            classes += [own] * (own not in classes)
            count = {c: [LABELS[j] for j in kept].count(c) for c in classes}
            if count[own] >= CAPACITY / len(classes) and count[own] > 0:
                continue
            if len(kept) >= CAPACITY:
                fullest = next(c for c in classes if count[c] == max(count.values()))
                kept.remove(draw.choice([j for j in kept if LABELS[j] == fullest]))
            kept.append(i)
        after.append(list(kept))
    return after


def biased(chance):
    """chance: of the n-th bucket, counted from 1."""

    def sampler(draw):
        kept, after = [], []
        for n, some in enumerate(ROUNDS, start=1):
            old, new = list(kept), []
            for i in draw.permutation(some)[:CAPACITY]:
                if len(old) + len(new) < CAPACITY:
                    new.append(i)
                elif draw.random() < chance(n) and old:
                    old.pop(draw.integers(len(old)))
                    new.append(i)
            kept = old + new
            after.append(list(kept))
        return after

    return sampler


# Ours.


def add(memory, some, draws, labels=range(12)):
    memory.add(torch.tensor(some), torch.tensor([labels[i] for i in some]), draws)


def memories(make, pieces=None, labels=range(12)):
    """pieces: samples that are added at once; None for those of a round."""

    def sampler(draws):
        memory, after = make(), []
        for some in ROUNDS:
            for piece in torch.split(torch.tensor(some), pieces or len(some)):
                add(memory, piece.tolist(), draws, labels)
            parts = getattr(memory, "parts", [memory])
            after.append([i for part in parts for i in part.x.tolist()])
        return after

    return sampler


def learners(fill):
    """A learner's memory after hooks that a round calls; in "every_step" each epoch brings other samples."""

    def sampler(seed):
        learner, after = ReplayLearner(capacity=CAPACITY, fill=fill), []
        for k, some in enumerate(ROUNDS, start=1):
            x = torch.tensor(some)
            data = RoundData(x, x, k, seed, (), torch.device("cpu"), torch.Tensor.float)
            learner.before_round(data)
            learner.data = data
            epochs = torch.split(x, 2) if fill == "every_step" else (x, x)
            for epoch, part in enumerate(epochs):
                for step, batch in enumerate(torch.split(part, 2)):
                    learner.after_step(batch, batch, epoch, step)
            learner.after_round(data)
            after.append(learner.memory.x.tolist())
        return after

    return sampler


def streams(sampler):
    draws = torch.Generator().manual_seed(1)
    return features([sampler(draws) for _ in range(STREAMS)])


def textbook(sampler, n=3 * STREAMS, seed=2):
    draw = np.random.default_rng(seed)
    return features([sampler(draw) for _ in range(n)])


def reservoir(in_place=False):
    return lambda: ReservoirMemory(CAPACITY, in_place=in_place)


@pytest.fixture(scope="module")
def by_algorithm_r():
    return textbook(algorithm_r)


def test_a_reservoir_keeps_what_algorithm_r_keeps(by_algorithm_r):
    assert difference(streams(memories(reservoir())), by_algorithm_r) > UNLIKELY


def test_a_learners_reservoir_keeps_what_algorithm_r_keeps(by_algorithm_r):
    kept = features([learners("after_round")(seed) for seed in range(STREAMS)])
    assert difference(kept, by_algorithm_r) > UNLIKELY


def sets(after):
    return [sorted(kept) for kept in after]


def test_a_reservoir_keeps_the_same_however_its_samples_are_handed_over():
    for seed in range(40):
        ways = [memories(reservoir()), *(memories(reservoir(in_place=True), pieces) for pieces in (1, 2, None))]
        rounds, *others = [sets(way(torch.Generator().manual_seed(seed))) for way in ways]
        assert all(other == rounds for other in others)
        rounds, *others = [sets(learners(fill)(seed)) for fill in ("after_round", "during_round", "every_step")]
        assert all(other == rounds for other in others)


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (memories(lambda: PerRoundMemory(2)), each_round),
        (memories(lambda: ClassBalancedMemory(CAPACITY), labels=LABELS), greedy),
        (memories(lambda: BiasedReservoirMemory(CAPACITY, "alpha_over_n", 1.5)), biased(lambda n: 1.5 / n)),
        (memories(lambda: BiasedReservoirMemory(CAPACITY, "constant", 0.4)), biased(lambda n: 0.4)),
    ],
    ids=["per round", "balanced", "alpha over n", "constant"],
)
def test_memories_that_choose_keep_what_their_textbook_keeps(ours, theirs):
    assert difference(streams(ours), textbook(theirs)) > UNLIKELY


# Wrong samplers, to see that the comparison can fail.


def keys_drawn_anew(draw):
    """Those in memory draw new keys whenever something comes: late rounds are favoured."""
    kept, after = [], []
    for some in ROUNDS:
        kept = list(draw.permutation([*kept, *some])[:CAPACITY])
        after.append(kept)
    return after


def same_keys_each_round(draw):
    """Each round begins the same stream of keys again."""
    fresh, keys, after = draw.random(12), {}, []
    for some in ROUNDS:
        keys.update(zip(some, fresh, strict=False))
        after.append(sorted(keys, key=keys.get)[-CAPACITY:])
    return after


def places_of_a_round_at_once(draw):
    """As the buffer of ER-ACE's authors does."""
    places, after = [], []
    for some in ROUNDS:
        for t in some:
            place = t if t < CAPACITY else draw.integers(some[0])
            if t < CAPACITY:
                places.append(t)
            elif place < CAPACITY:
                places[place] = t
        after.append(list(places))
    return after


def the_last_makes_room(draw):
    """Uniform at any time but for the pairs: of those in memory the newest goes."""
    kept, after = [], []
    for some in ROUNDS:
        for t in some:
            if t < CAPACITY:
                kept.append(t)
            elif draw.integers(t + 1) < CAPACITY:
                kept[-1] = t
        after.append(list(kept))
    return after


def with_replacement(draw):
    return [list(draw.choice(range(some[-1] + 1), min(CAPACITY, some[-1] + 1))) for some in ROUNDS]


def all_anew(draw):
    """A uniform subset after each round, but of samples that had gone, too."""
    return [list(draw.permutation(some[-1] + 1)[:CAPACITY]) for some in ROUNDS]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda draw: algorithm_r(draw, shift=0),
        keys_drawn_anew,
        same_keys_each_round,
        places_of_a_round_at_once,
        the_last_makes_room,
        with_replacement,
        all_anew,
    ],
)
def test_a_wrong_reservoir_is_told_from_algorithm_r(wrong, by_algorithm_r):
    assert difference(textbook(wrong, STREAMS, seed=3), by_algorithm_r) < SURE


def test_a_wrong_chance_of_a_biased_reservoir_is_noticed():
    right = textbook(biased(lambda n: 1.5 / n))
    assert difference(textbook(biased(lambda n: min(1.0, 1.5 / (n - 1)) if n > 1 else 1.0), STREAMS, 3), right) < SURE


# What comes back.


def drawn(sample):
    """How often each three of six come back, of 3000 draws."""
    threes = {three: i for i, three in enumerate(combinations(range(6), 3))}
    found = [threes.get(tuple(sorted(sample())), len(threes)) for _ in range(3000)]
    return np.bincount(found, minlength=len(threes) + 1)


def unevenness(counts):
    """p-value of even counts; the last is of what may never be."""
    *each, never = counts
    expected = sum(counts) / len(each)
    return 0.0 if never else chi2.sf(sum((n - expected) ** 2 / expected for n in each), len(each) - 1)


def filled(memory):
    for k in range(3):
        memory.add(torch.arange(2 * k, 2 * k + 2), torch.arange(2 * k, 2 * k + 2), torch.Generator().manual_seed(k))
    return memory


@pytest.mark.parametrize("memory", [ReservoirMemory(6), PerRoundMemory(2), ClassBalancedMemory(6)], ids=type)
def test_any_samples_come_back_together_as_often_as_any_others(memory):
    draws = torch.Generator().manual_seed(4)
    filled(memory)
    assert unevenness(drawn(lambda: memory.sample(3, draws)[1].tolist())) > UNLIKELY


def test_draws_with_replacement_and_neighbours_are_noticed():
    draw = np.random.default_rng(5)
    assert unevenness(drawn(lambda: draw.integers(6, size=3).tolist())) < SURE
    assert unevenness(drawn(lambda: ((draw.integers(6) + np.arange(3)) % 6).tolist())) < SURE
