"""Replay, GEM and A-GEM on conversations.

Replay (Chaudhry et al. 2019, arXiv 1902.10486, algorithm 1): a step goes down the mean of -log p over all that the
assistant says in the new batch and in as many conversations from memory, a uniform sample of all that came.
A-GEM (Chaudhry et al. 2019, arXiv 1812.00420, eq. 11): g - (g.m / m.m) m if g.m < 0, else g; m is the gradient on a
sample of the memory.
GEM (Lopez-Paz & Ranzato 2017, eq. 8 to 11): g + G'v where a g_k.g < 0, v solving min 1/2 v'GG'v + g'G'v over
v >= margin, one g_k for each earlier round.

Left open for conversations: memories are filled after the round; the gradient of a memory is that of its mean over
tokens; it is the projected gradient that is clipped. Continual-NExT 3658f2d adds the projected gradient to the plain
one (swift/trainers/trainers.py:853-1075), which is neither.
"""

import itertools

import pytest
import torch

pytest.importorskip("transformers")

from ianvs.authoring.projection import agem_projection, gem_projection
from ianvs.testalgorithms.language.agem.basemodel import AGEM
from ianvs.testalgorithms.language.conversation_memory import ConversationMemory
from ianvs.testalgorithms.language.gem.basemodel import GEM
from ianvs.testalgorithms.language.replay.basemodel import Replay
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.language import Exam, Kept, language, surprise


def replay(exam, *, capacity, replay_ratio):
    net, memory = exam.network(), Kept(capacity)
    for k in exam.rounds:
        draws = exam.draws(k, "replay")

        def loss(some, draws=draws):
            return surprise(net, some + memory.drawn(round(replay_ratio * len(some)), draws))

        exam.descend(k, exam.talks(k), list(net.parameters()), loss)
        memory.offer(exam, k)
        yield exam.after(net, memory=memory.numbers())


def gradient(net, weights, some):
    return torch.cat([g.flatten() for g in torch.autograd.grad(surprise(net, some), weights)])


def flat(weights):
    return torch.cat([w.grad.flatten() for w in weights])


def put(weights, g):
    for w, part in zip(weights, torch.split(g, [w.numel() for w in weights]), strict=True):
        w.grad = part.view_as(w).clone()


def agem(exam, *, capacity, memory_batch):
    net, memory = exam.network(), Kept(capacity)
    weights = list(net.parameters())
    for k in exam.rounds:
        draws = exam.draws(k, "replay")

        def project(draws=draws):
            if memory.rows:
                g, m = flat(weights), gradient(net, weights, memory.drawn(memory_batch, draws))
                if g @ m < 0:
                    put(weights, g - (g @ m) / (m @ m) * m)

        exam.descend(k, exam.talks(k), weights, lambda some: surprise(net, some), before=project)
        memory.offer(exam, k)
        yield exam.after(net, memory=memory.numbers())


def gem(exam, *, per_round, margin):
    net, memories = exam.network(), []
    weights = list(net.parameters())
    for k in exam.rounds:

        def project():
            g = flat(weights)
            if memories:
                G = torch.stack([gradient(net, weights, [talk for *_, talk in m.rows]) for m in memories])
                if (G @ g).min() < 0:
                    put(weights, g + G.T @ dual(G.double() @ G.T.double(), G.double() @ g.double(), margin).float())

        exam.descend(k, exam.talks(k), weights, lambda some: surprise(net, some), before=project)
        memories.append(Kept(per_round))
        memories[-1].offer(exam, k)
        yield exam.after(net, memory=[number for m in memories for number in m.numbers()])


def dual(Q, p, margin):
    """argmin over v >= margin of 1/2 v'Qv + p'v: the best of all ways to hold some of v at the margin."""
    best, least = None, float("inf")
    for free in itertools.product([False, True], repeat=len(p)):
        free = torch.tensor(free)
        v = torch.full_like(p, margin)
        if free.any():
            v[free] = torch.linalg.solve(Q[free][:, free], -p[free] - Q[free][:, ~free] @ v[~free])
        value = v @ Q @ v / 2 + p @ v
        if (v >= margin).all() and value < least:
            best, least = v, value
    return best


RIVALS = Exam(learning_rate=1e-2, batch_size=1, warmup=0.1)  # steps so small and fast that rounds are at odds
CHECKS = [
    language(
        Replay,
        replay,
        [
            Mutant("memory before or after the step", "self.old = self.encode(self.memory.conversations)",
                   "self.after_round(data); self.old = self.encode(self.memory.conversations)"),
            Mutant("factor", "round(self.replay_ratio * len(conversations))", "len(conversations)"),
            Mutant("order of rounds", 'data.generator("replay")', "torch.Generator().manual_seed(data.round)"),
            Mutant("memory overflows", "-keys[i])[: self.capacity]", "keys[i])[: self.capacity]", ConversationMemory),
        ],
        capacity=5,
        replay_ratio=1.5,
    ),
    language(
        AGEM,
        agem,
        [
            Mutant("sign", "product >= 0:", "product < 0:", agem_projection),
            Mutant("factor", "product / torch.dot(reference, reference)", "product", agem_projection),
            Mutant("order of rounds", "if not self.old:", "if not self.old or len(self.memory) > 4:"),
            Mutant("factor", "[: self.memory_batch]", "[:1]"),
        ],
        capacity=5,
        memory_batch=2,
        exam=RIVALS,
        tolerance=2e-5,
    ),
    language(
        GEM,
        gem,
        [
            Mutant("factor", "margin * gram.sum(1)", "0 * gram.sum(1)", gem_projection),
            Mutant("factor", "dtype=torch.float64) + margin", "dtype=torch.float64)", gem_projection),
            Mutant("sign", "(products < 0).any()):\n        return gradient\n    gram",
                   "(products > 0).any()):\n        return gradient\n    gram", gem_projection),
            Mutant("order of rounds", "for conversations in self.old]", "for conversations in self.old[-1:]]"),
        ],
        per_round=2,
        exam=RIVALS,
        tolerance=2e-5,
        margin=0.2,
    ),
    language(
        GEM,
        gem,
        [
            Mutant("order of rounds", "for conversations in self.old]", "for conversations in self.old[:1]]"),
            Mutant("factor", "eigh(gram)", "eigh(2 * gram)", gem_projection),
            Mutant("sign", "products + margin", "-products + margin", gem_projection),
        ],
        title="GEM, margin 0",
        per_round=2,
        exam=RIVALS,
        tolerance=2e-5,
        margin=0.0,
    ),
]  # fmt: skip


def test_memories_of_conversations_go_where_their_papers_algorithms_go():
    for check in CHECKS:
        check.conforms()
