"""GEM (Lopez-Paz & Ranzato 2017, eq. 8 to 11, algorithm 1) and A-GEM (Chaudhry et al. 2019, arXiv 1812.00420, eq. 11).

GEM: where a g_k.g is negative, g becomes g + G'v, v >= margin the solution of min 1/2 v'GG'v + g'G'v. The margin is the
code's, GradientEpisodicMemory 34c6b8e, model/gem.py:86-89; the paper's "memory strength" is added to the v of margin 0.
The code has 0.001 on the diagonal of GG' for its solver (:84); ours has not, and solves it exactly. Memory of a round:
the paper keeps the last samples, ours and Mammoth 7ab9db9 (models/gem.py:126-141) some at random. The forward pass of
the batch comes first, as in algorithm 1; in the code those of the memories do (:175-195), which only changes the
running means of a normalisation.
A-GEM: Mammoth 7ab9db9, models/agem.py:52-77: the batch first, then what was drawn from the memory; filled after a task
(:42-49) with so many of each, at random; ours with a reservoir.
Both: what was projected is the gradient of torch's SGD, so that momentum comes after it (models/agem.py:75).
"""

from itertools import chain, combinations

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import PerRoundMemory, ReplayLearner, TorchLearner, agem_projection, gem_projection
from ianvs.testalgorithms.agem.basemodel import AGEM
from ianvs.testalgorithms.gem.basemodel import GEM
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.naive_memories import PerRound, Reservoir
from tests.nightly.conformance.vision import vision


def steps(exam, k, net, changed):
    """Round k, where a step takes changed(g, slope) in place of its gradient g; slope(x, y): of other samples."""
    x, y = exam.data(k)
    optimizer = exam.sgd(net.parameters())

    def slope(some_x, some_y):
        optimizer.zero_grad()
        cross_entropy(net(some_x) + exam.mask(k), some_y).backward()
        return torch.cat([p.grad.flatten() for p in net.parameters()])

    for _, some in exam.batches(k, len(y)):
        g = changed(slope(x[some], y[some]), slope)
        for p, part in zip(net.parameters(), g.split([p.numel() for p in net.parameters()]), strict=True):
            p.grad = part.reshape(p.shape).clone()
        optimizer.step()


def naive_agem(exam, *, capacity, replay_batch=256):
    net, memory = exam.network(), Reservoir(capacity)
    for k in exam.rounds:
        old, keys = exam.draws(k, "replay"), exam.draws(k, "memory")

        def changed(g, slope, old=old):
            if not len(memory):
                return g
            m = slope(*memory.drawn(replay_batch, old))
            return g - (g @ m) / (m @ m) * m if g @ m < 0 else g

        steps(exam, k, net, changed)
        memory.offer(keys, *exam.data(k))
        yield exam.after(net, k, memory.columns)


def naive_gem(exam, *, samples_per_round, margin=0.5):
    net, memory = exam.network(), PerRound(samples_per_round)
    for k in exam.rounds:

        def changed(g, slope):
            G = [slope(*part.columns) for part in memory.parts]
            if not any(g @ row < 0 for row in G):
                return g
            return (g.double() + least(torch.stack(G).double(), g.double(), margin) @ torch.stack(G).double()).float()

        steps(exam, k, net, changed)
        memory.offer(exam.draws(k, "memory"), *exam.data(k))
        yield exam.after(net, k, [c for part in memory.parts for c in part.columns])


def least(G, g, margin):
    """v >= margin where 1/2 v'GG'v + g'G'v is least, of all places where some v_k are free and others are margin."""
    Q, q, found = (G @ G.T).numpy(), (G @ g).numpy(), []
    for free in map(list, chain.from_iterable(combinations(range(len(q)), n) for n in range(len(q) + 1))):
        v = np.full(len(q), margin)
        v[free] = 0.0
        v[free] = np.linalg.solve(Q[np.ix_(free, free)], -(q + Q @ v)[free])
        if (v >= margin).all():
            found.append((0.5 * v @ Q @ v + q @ v, v.tolist()))
    return torch.tensor(min(found)[1], dtype=torch.float64)


PLAIN = Mutant("mask", "self.mask_unseen = mask_unseen", "self.mask_unseen = not mask_unseen", TorchLearner)
TAKEN_IN = Mutant("order of rounds", "self.after_round(data)", "0", TorchLearner)
CHECKS = [
    vision(
        AGEM,
        naive_agem,
        [
            PLAIN,
            Mutant("sign", "gradient - (product", "gradient + (product", agem_projection),
            Mutant("sign", 'type == "cpu" and product >= 0', 'type == "cpu" and product < 0', agem_projection),
            Mutant("factor", "torch.dot(reference, reference))", "reference.norm())", agem_projection),
            Mutant("memory before or after the step", "len(self.memory)", "self.data.round > 2"),
            Mutant("order of rounds", 'data.generator("replay"), data', "torch.Generator(), data", ReplayLearner),
        ],
        capacity=20,
        replay_batch=12,
    ),
    vision(AGEM, naive_agem, [PLAIN, TAKEN_IN, Mutant("factor", "int = 256", "int = 10")],
           title="A-GEM, all of the memory", capacity=20),
    vision(
        GEM,
        naive_gem,
        [
            PLAIN,
            Mutant("factor", "margin * gram.sum(1)", "margin", gem_projection),
            Mutant("factor", "dtype=torch.float64) + margin", "dtype=torch.float64)", gem_projection),
            Mutant("sign", "(products < 0).any()):\n        return", "(products > 0).any()):\n        return",
                   gem_projection),
            Mutant("sign", "d = -(vectors", "d = (vectors", gem_projection),
            Mutant("order of rounds", "self.memory.parts)", "self.memory.parts[-1:])"),
        ],
        samples_per_round=6,
    ),
    vision(
        GEM,
        naive_gem,
        [
            PLAIN,
            Mutant("memory before or after the step", "if len(self.memory):", "if data.round > 2:"),
            Mutant("order of rounds", "self.parts.append(part)", "self.parts = [part]", PerRoundMemory),
        ],
        title="GEM without a margin",
        samples_per_round=40,
        margin=0.0,
    ),
]  # fmt: skip


def test_gem_and_agem_step_along_their_equations():
    for check in CHECKS:
        check.conforms()
