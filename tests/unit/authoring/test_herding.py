"""Which samples a memory of exemplars keeps, against iCaRL's algorithms 4 and 5 written out with loops."""

from collections import Counter

import numpy as np
import pytest
import torch

from ianvs.authoring import HerdingMemory, ReplayLearner, herding
from tests.errors import errors_of


def herded(features, n):
    """Algorithm 4, one candidate after the other."""
    features = np.asarray(features, float)
    mean, chosen = features.mean(0), []
    for k in range(1, n + 1):
        distances = {}
        for i in range(len(features)):
            if i not in chosen:
                distances[i] = np.linalg.norm(mean - (features[i] + sum(features[j] for j in chosen)) / k)
        chosen.append(min(distances, key=distances.get))
    return chosen


def test_herding_by_hand():
    # The mean of 0, 1, 2, 9 is 3. Nearest is 2. With it, (2 + 9) / 2 = 5.5, (2 + 1) / 2 = 1.5, (2 + 0) / 2 = 1: 1 is
    # next. With both, (3 + 9) / 3 = 4 is nearer to 3 than (3 + 0) / 3 = 1.
    assert herding(torch.tensor([[0.0], [1.0], [2.0], [9.0]]), 3).tolist() == [2, 1, 3]


@pytest.mark.parametrize("n", [1, 7, 20])
def test_herding_is_algorithm_4(n):
    features = torch.nn.functional.normalize(torch.randn(20, 5, generator=torch.Generator().manual_seed(n)))
    assert herding(features, n).tolist() == herded(features, n)


def test_herding_takes_no_more_than_there_are_and_none_twice():
    order = herding(torch.zeros(4, 3), 9)
    assert sorted(order.tolist()) == [0, 1, 2, 3]


def test_what_is_herded_has_a_mean_closer_to_that_of_all_than_what_is_drawn():
    draws = torch.Generator().manual_seed(0)
    features = torch.randn(300, 16, generator=draws)

    def off(index):
        return float((features[index].mean(0) - features.mean(0)).norm())

    drawn = np.mean([off(torch.randperm(300, generator=draws)[:20]) for _ in range(20)])
    assert off(herding(features, 20)) < 0.3 * drawn


def some(classes, n=30, seed=0):
    draws = torch.Generator().manual_seed(seed)
    y = torch.tensor(classes).repeat(n)
    return torch.randn(len(y), 4, generator=draws) + y[:, None], y


def itself(x):
    return x


def test_a_memory_shares_its_places_among_classes_and_keeps_the_first_of_each():
    memory = HerdingMemory(20)
    x, y = some([3, 1])
    memory.add(x, y, itself)
    for c in (1, 3):
        of_class = x[y == c]
        assert torch.equal(memory.x[memory.y == c], of_class[herded(of_class, 10)])
    first = {c: memory.x[memory.y == c].clone() for c in (1, 3)}
    memory.add(*some([0], seed=1), itself)
    assert Counter(memory.y.tolist()) == {0: 6, 1: 6, 3: 6}  # 20 / 3, rounded down
    for c in (1, 3):
        assert torch.equal(memory.x[memory.y == c], first[c][:6])
    assert memory.seen == 90


def test_a_class_that_comes_again_is_chosen_from_what_is_kept_of_it_and_what_came():
    memory, (x, y), (more, same) = HerdingMemory(5), some([2]), some([2], seed=1)
    memory.add(x, y, itself)
    kept = memory.x.clone()
    memory.add(more, same, itself)
    candidates = torch.cat([kept, more])
    assert torch.equal(memory.x, candidates[herded(candidates, 5)])


def test_further_columns_stay_with_their_samples():
    memory, (x, y) = HerdingMemory(7), some([0, 1])
    memory.add(x, y, itself, x.sum(1))
    memory.add(*(some([1, 2], seed=1)), itself, some([1, 2], seed=1)[0].sum(1))
    torch.testing.assert_close(memory.columns[2], memory.x.sum(1))


def test_a_memory_of_exemplars_comes_back_as_it_was():
    memory, resumed = HerdingMemory(9), HerdingMemory(9)
    memory.add(*some([0, 1]), itself)
    resumed.restore(memory.state())
    for each in (memory, resumed):
        each.add(*some([1, 2], seed=1), itself)
    assert torch.equal(memory.x, resumed.x)
    assert torch.equal(memory.y, resumed.y)


def test_a_memory_too_small_for_its_classes_says_so():
    memory = HerdingMemory(2)
    assert errors_of(memory.add, *some([0, 1, 2]), itself) == [("refused-arguments", "")]


def test_a_memory_without_a_place_keeps_nothing():
    memory = HerdingMemory(0)
    memory.add(*some([0, 1]), itself)
    assert len(memory) == 0


def test_exemplars_are_chosen_after_a_round():
    assert errors_of(ReplayLearner, selection="herding", fill="during_round") == [("conflicting-keys", "")]
