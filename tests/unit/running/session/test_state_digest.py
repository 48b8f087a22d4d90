"""What of a learner's state an examination may not change, as far as it can be seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ianvs.running.session.state_digest import changed_between, digest_budget, state_digest


class Learner:
    def __init__(self):
        self.network = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
        self.memory = [np.zeros(3), {"a": np.ones(2)}]
        self.itself, self.count, self.text = self, 1, "x"


def changed(what, most=1 << 30):
    learner = Learner()
    before = state_digest([learner], most)
    what(learner)
    return changed_between(before, state_digest([learner], most))


CHANGES = {
    "a buffer": (lambda one: one.network(torch.ones(5, 4)), "_buffers"),
    "a weight": (lambda one: one.network[1].weight.data.add_(1), "weight"),
    "an array in a list": (lambda one: one.memory[0].__setitem__(1, 5), "memory[0]"),
    "an array in a mapping": (lambda one: one.memory[1]["a"].__setitem__(0, 5), "['a']"),
    "a longer list": (lambda one: one.memory.append(1), "memory"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_told_by_the_name_of_its_place(what):
    change, place = CHANGES[what]
    assert place in changed(change) and changed(change).startswith("Learner.")


@pytest.mark.parametrize(
    "what",
    [
        lambda one: None,
        lambda one: setattr(one, "cached", np.ones(3)),
        lambda one: one.network.eval()(torch.ones(5, 4)),
    ],
)
def test_what_is_new_or_only_read_is_no_change(what):
    assert changed(what) == ""


def test_of_a_large_state_samples_are_looked_at():
    learner = Learner()
    learner.large = np.zeros(1 << 20)
    before = state_digest([learner], 1 << 16)
    learner.large[::3] = 1
    assert "large" in changed_between(before, state_digest([learner], 1 << 16))


def test_it_is_a_hundredth_of_a_round_at_most():
    assert digest_budget(0) < digest_budget(10) < digest_budget(100) < digest_budget(10_000) == digest_budget(100_000)
