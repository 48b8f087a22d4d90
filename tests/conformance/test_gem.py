"""GEM (Lopez-Paz & Ranzato 2017, eq. 8 to 11) and A-GEM (Chaudhry et al. 2019, eq. 11).

A-GEM: g - (g.m / m.m) m where g.m < 0, m the gradient on samples drawn from the memory. GEM: the vector nearest to g
with no negative product with any g_k, g_k the gradient on all that is kept of round k; the dual's v is at least the
margin. Both act between the backward pass and the step, so that momentum adds what earlier steps took.

Left open by the papers: the memory is filled after the round, by a uniform subset (Mammoth 7ab9db9,
models/agem.py:40-47, fills it after the task, too; GEM's authors keep the last samples of a round:
GradientEpisodicMemory 34c6b8e, model/gem.py:160-172). The network is in training mode for the memory's gradients
(Mammoth models/agem.py:61), so that its running statistics see old samples. GEM turns a gradient only where a product
is negative (GradientEpisodicMemory 34c6b8e, model/gem.py:205-208); with a margin above 0 its quadratic program alone
would always do so. Theirs takes g after the old gradients, at the same weights; with batch normalisation only the
running statistics see another order.
"""

from itertools import product

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring.projection import agem_projection, gem_projection
from ianvs.testalgorithms.agem.basemodel import AGEM
from ianvs.testalgorithms.gem.basemodel import GEM
from tests.conformance.kit import Mutant
from tests.conformance.statements import Reservoir
from tests.conformance.vision import Exam, vision


def flat(net):
    return torch.cat([p.grad.flatten() for p in net.parameters()])


def gradient(net, x, y, mask):
    return torch.cat([g.flatten() for g in torch.autograd.grad(cross_entropy(net(x) + mask, y), [*net.parameters()])])


def put(net, vector):
    for p in net.parameters():
        p.grad, vector = vector[: p.numel()].view_as(p), vector[p.numel() :]


def averaged(exam, *, capacity, replay_batch):
    net, memory = exam.network(), Reservoir(capacity)
    for k in exam.rounds:
        x, y = exam.data(k)
        optimizer, old = exam.sgd(net.parameters()), exam.draws(k, "replay")
        for _, some in exam.batches(k, len(y)):
            optimizer.zero_grad()
            cross_entropy(net(x[some]) + exam.mask(k), y[some]).backward()
            if len(memory):
                g, m = flat(net), gradient(net, *memory.drawn(replay_batch, old), exam.mask(k))
                put(net, g - (g @ m) / (m @ m) * m if g @ m < 0 else g)
            optimizer.step()
        memory.offer(exam.draws(k, "memory"), x, y)
        yield exam.after(net, k, memory.columns)


def nearest(g, G, margin):
    """g + G'v, v the best of all choices of which v_k stand at the margin."""
    if not bool((G @ g < 0).any()):
        return g
    gram, linear, best = G @ G.T, G @ g, None
    for free in product((False, True), repeat=len(G)):
        free = torch.tensor(free)
        v = torch.full((len(G),), margin, dtype=torch.float64)
        if free.any():
            v[free] = torch.linalg.solve(gram[free][:, free], -linear[free] - gram[free][:, ~free] @ v[~free])
        value = 0.5 * v @ gram @ v + linear @ v
        if bool((v >= margin - 1e-12).all()) and (best is None or value < best[0]):
            best = value, v
    return g + best[1] @ G


def episodic(exam, *, samples_per_round, margin):
    net, memories = exam.network(), []
    for k in exam.rounds:
        x, y = exam.data(k)
        optimizer = exam.sgd(net.parameters())
        for _, some in exam.batches(k, len(y)):
            optimizer.zero_grad()
            cross_entropy(net(x[some]) + exam.mask(k), y[some]).backward()
            if memories:
                g = flat(net)
                G = torch.stack([gradient(net, *memory.columns, exam.mask(k)) for memory in memories])
                put(net, nearest(g.double(), G.double(), margin).float())
            optimizer.step()
        memories.append(Reservoir(samples_per_round))
        memories[-1].offer(exam.draws(k, "memory"), x, y)
        yield exam.after(net, k, [column for memory in memories for column in memory.columns])


AVERAGED = [
    Mutant(
        "sign",
        "product / torch.dot(reference, reference)) * reference",
        "-product / torch.dot(reference, reference)) * reference",
        agem_projection,
    ),
    Mutant("factor", "torch.dot(reference, reference)) *", "torch.dot(gradient, gradient)) *", agem_projection),
    Mutant("memory before or after the step", "if len(self.memory):", "if False:", AGEM),
    Mutant("momentum", "set_flat_gradients(self.network.parameters(), agem", "(self.network.parameters(), agem", AGEM),
]
EPISODIC = [
    Mutant("sign", "d = -(vectors", "d = (vectors", gem_projection),
    Mutant("order of rounds", "for part in self.memory.parts)", "for part in self.memory.parts[:1])", GEM),
    Mutant("memory before or after the step", "if len(self.memory):", "if False:", GEM),
]
WITH_MARGIN = [
    *EPISODIC,
    Mutant("sign", "linear = products + margin", "linear = products - margin", gem_projection),
    Mutant("factor", "u, dtype=torch.float64) + margin", "u, dtype=torch.float64) + 0 * margin", gem_projection),
]
CHECKS = [
    vision(AGEM, averaged, AVERAGED, capacity=15, replay_batch=10),
    vision(AGEM, averaged, AVERAGED, capacity=15, replay_batch=10, exam=Exam(momentum=0.0), title="AGEM, plain steps"),
    vision(GEM, episodic, EPISODIC, samples_per_round=7, margin=0.0, title="GEM, margin 0"),
    vision(GEM, episodic, WITH_MARGIN, samples_per_round=7, margin=0.5),
]


def test_gem_and_agem_turn_the_steps_that_would_harm_the_memory():
    for check in CHECKS:
        check.conforms()
