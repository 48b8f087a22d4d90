"""Settings of the papers' tables: the first round, nesterov, several updates for a batch, memories by class."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import ClassBalancedMemory, HerdingMemory, TorchLearner, mlp
from ianvs.authoring.replay_learner import ReplayLearner
from ianvs.authoring.training_loop import Schedule
from ianvs.testalgorithms.gdumb.basemodel import GDumb
from ianvs.testalgorithms.replay.basemodel import Replay
from tests.errors import errors_of
from tests.unit.authoring.test_learner import CONTEXT, Vectors, flat, taught

ONE_BATCH = {"hidden": (), "batch_size": 40, "learning_rate": 0.2}


def by_hand(learner, rounds, updates=1):
    """torch.optim.SGD on the whole data: `rounds` are (learning rate, weight decay, epochs) of each round."""
    learner.predict(Vectors(labelled=False), **CONTEXT)
    network = mlp((2,), 2, hidden=())
    network.load_state_dict(learner.network.state_dict())
    x, y = Vectors().tensors()
    for rate, decay, epochs in rounds:
        steps = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9, nesterov=True, weight_decay=decay)
        for _ in range(epochs * updates):
            steps.zero_grad()
            cross_entropy(network(x), y).backward()
            steps.step()
    return torch.cat([p.detach().flatten() for p in network.parameters()])


def test_the_first_round_has_settings_of_its_own_and_nesterov_is_that_of_torch():
    first = {"epochs": 4, "learning_rate": 0.1, "weight_decay": 0.01}
    learner = TorchLearner(epochs=3, nesterov=True, first_round=first, **ONE_BATCH)
    wanted = by_hand(learner, [(0.1, 0.01, 4), (0.2, 0.0, 3), (0.2, 0.0, 3)])
    for k in (1, 2, 3):
        taught(learner, round=k)
    torch.testing.assert_close(flat(learner), wanted, rtol=1e-4, atol=1e-5)


def test_several_updates_on_each_batch_are_as_many_steps():
    learner = TorchLearner(epochs=1, updates_per_batch=3, nesterov=True, **ONE_BATCH)
    wanted = by_hand(learner, [(0.2, 0.0, 1)], updates=3)
    torch.testing.assert_close(flat(taught(learner, passes=1)), wanted, rtol=1e-4, atol=1e-5)


def test_a_memory_is_offered_a_batch_once_however_many_updates_it_gets():
    a, b = (
        taught(Replay(fill="during_round", updates_per_batch=n, epochs=1, batch_size=8, capacity=500)) for n in (1, 4)
    )
    assert a.memory.seen == b.memory.seen == 40
    assert len(b.memory) == 40


@pytest.mark.parametrize("selection", ["balanced", "herding"])
def test_a_memory_by_class_grows_with_the_classes(selection):
    memory = HerdingMemory(200, 3) if selection == "herding" else ClassBalancedMemory(200, 3)
    how = (lambda x: x) if selection == "herding" else torch.Generator()
    for k in range(4):
        y = torch.arange(20) % 2 + 2 * k
        memory.add(torch.randn(20, 2), y, how)
        assert torch.bincount(memory.y).tolist() == [3] * (2 * k + 2)


def test_memory_total_is_the_capacity_and_both_ways_are_not_one():
    assert ReplayLearner(memory_total=7).memory.capacity == GDumb(memory_total=7).memory.capacity == 7
    assert ReplayLearner(memory_per_class=5, selection="herding").memory.per_class == 5
    assert GDumb(memory_per_class=5).memory.per_class == 5
    both = {"memory_total": 7, "memory_per_class": 5, "selection": "herding"}
    assert errors_of(ReplayLearner, **both) == [("conflicting-keys", "")]
    assert errors_of(ReplayLearner, memory_per_class=5) == [("conflicting-keys", "")]
    assert errors_of(ReplayLearner, memory_per_class=0, selection="herding") == [("out-of-range", "")]


def test_settings_that_make_no_sense_are_refused():
    assert errors_of(TorchLearner, first_round={"epoch": 3}) == [("invalid-choice", "")]
    assert errors_of(TorchLearner, first_round={"epochs": "many"}) == [("refused-arguments", "")]
    assert errors_of(TorchLearner, nesterov=True, optimizer="adam") == [("conflicting-keys", "")]
    assert errors_of(Schedule, 0.1, 1, 8, updates_per_batch=0) == [("out-of-range", "")]
