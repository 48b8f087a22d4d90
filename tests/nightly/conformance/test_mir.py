"""Maximally interfered retrieval as Aljundi et al. 2019 (arXiv 1908.04742) state it, section 3.1 and algorithm 1.

Of some candidates from the memory those come back whose loss a step on the new batch alone would raise most; then one
step on both together. From the authors' code (Maximally_Interfered_Retrieval 35eda78): the step looked ahead is a plain
one, without momentum (mir.py:324-325, utils.py:47-60); both losses are those of a network in training mode
(mir.py:327-341), and the largest differences come back, sorted (:351). There the real step sums the two mean losses, of
two forward passes (:309-313, :359-365); ours is the algorithm's: one mean over both. There, too, running means of a
normalisation count the look at the candidates (:328); ours looks with a copy.
When the memory is filled: the algorithm offers a step's samples after it (`fill: during_round`); the code, too, but
nothing of the round's own task comes back (mir.py:320, buffer.py:185-188), so that the memory is by itself filled after
the round.
"""

import copy

import torch
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from ianvs.authoring import ReplayLearner
from ianvs.testalgorithms.mir.basemodel import MIR
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.naive_memories import Reservoir
from tests.nightly.conformance.vision import vision


def naive(exam, *, capacity, candidates, replay_batch=None, fill="after_round"):
    net, memory = exam.network(), Reservoir(capacity, in_place=fill != "after_round")
    for k in exam.rounds:
        x, y = exam.data(k)
        optimizer, old, keys = exam.sgd(net.parameters()), exam.draws(k, "replay"), exam.draws(k, "memory")
        for epoch, some in exam.batches(k, len(y)):
            all_x, all_y = x[some], y[some]
            if len(memory):
                old_x, old_y = memory.drawn(candidates, old)
                harm = interference(exam, k, copy.deepcopy(net), (x[some], y[some]), (old_x, old_y))
                worst = sorted(range(len(harm)), key=lambda i: -harm[i])[: replay_batch or len(some)]
                all_x, all_y = torch.cat([all_x, old_x[worst]]), torch.cat([all_y, old_y[worst]])
            optimizer.zero_grad()
            cross_entropy(net(all_x) + exam.mask(k), all_y).backward()
            optimizer.step()
            if epoch == 0 and fill == "during_round":
                memory.offer(keys, x[some], y[some])
        if fill == "after_round":
            memory.offer(keys, x, y)
        yield exam.after(net, k, memory.columns)


def interference(exam, k, net, new, old):
    """l(x, y; theta_v) - l(x, y; theta) of each old sample, theta_v = theta - rate * gradient of the new ones' loss."""
    theta = dict(net.named_parameters())

    def losses(weights, x, y):
        z = functional_call(net, weights, (x,)) + exam.mask(k)
        return cross_entropy(z, y, reduction="none")

    slope = torch.autograd.grad(losses(theta, *new).mean(), list(theta.values()))
    ahead = {name: w - exam.learning_rate * g for (name, w), g in zip(theta.items(), slope, strict=True)}
    return (losses(ahead, *old) - losses(theta, *old)).tolist()


SLIPS = [
    Mutant("sign", "old_x, old_y) - before", "old_x, old_y) * -1 + before"),
    Mutant("sign", "parameter -=", "parameter +="),
    Mutant("factor", "return self.losses(ahead, old_x, old_y) - before", "return self.losses(ahead, old_x, old_y)"),
    Mutant("memory before or after the step", "copy.deepcopy(self.network)  #", "self.network  #"),
    Mutant("mask", "cross_entropy(self.data.masked(self.logits(x, network=network), y), y",
           "cross_entropy(self.logits(x, network=network), y"),
    Mutant("order of rounds", 'data.generator("replay"), data', "torch.Generator(), data", ReplayLearner),
]  # fmt: skip
FIRST = Mutant("first epoch only", " and epoch == 0", "", ReplayLearner)
CHECKS = [
    vision(MIR, naive, SLIPS, capacity=25, candidates=20),
    vision(MIR, naive, [*SLIPS, FIRST], title="MIR, as in a stream", capacity=25, candidates=12, replay_batch=3,
           fill="during_round"),
]  # fmt: skip


def test_mir_replays_what_a_step_would_harm_most():
    for check in CHECKS:
        check.conforms()
