"""Training on nothing but the memory: GDumb (Prabhu et al. 2020) and CLEAR's biased reservoirs (Lin et al. 2021).

GDumb, algorithms 1 and 2: a sample is stored where its class is new or has fewer than capacity / (classes so far); a
full memory makes room by a random sample of the class that has most. The network is trained anew, from its first
weights, on the memory alone. (Its authors' code takes the first samples of each class: GDumb 4f412d7,
src/dataloader.py:75-77.)

CLEAR: the first bucket fills the memory; of bucket i, counted from 0, each sample is accepted with probability
alpha / (i + 1), "alpha_over_n", or alpha, "constant"; what is accepted takes the places of old samples drawn at
random. A bucket is first cut to the memory's size. Training goes over the memory, which has the bucket already.
"""

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import BiasedReservoirMemory, ClassBalancedMemory, ReservoirMemory
from ianvs.testalgorithms.biased_reservoir.basemodel import BiasedReservoir
from ianvs.testalgorithms.gdumb.basemodel import GDumb
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.naive_memories import Balanced, Reservoir
from tests.nightly.conformance.vision import vision


def study(exam, net, k, x, y):
    """The same over the memory as over any data."""
    optimizer = exam.sgd(net.parameters())
    for _, some in exam.batches(k, len(y)):
        loss = cross_entropy(net(x[some]) + exam.mask(k), y[some])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def dumb(exam, *, capacity):
    memory = Balanced(capacity)
    for k in exam.rounds:
        memory.offer(exam.draws(k, "memory"), *exam.data(k))
        net = exam.network()
        study(exam, net, k, *memory.columns)
        yield exam.after(net, k, memory.columns)


class Biased:
    """See above; old samples that stay stand before what comes."""

    def __init__(self, capacity, formula, alpha):
        self.capacity, self.formula, self.alpha, self.rows, self.buckets = capacity, formula, alpha, [], 0

    def offer(self, draws, x, y):
        before = len(self.rows)
        bucket = torch.randperm(len(y), generator=draws)[: self.capacity].tolist()
        free, asked = bucket[: self.capacity - before], bucket[self.capacity - before :]
        p = self.alpha / (self.buckets + 1) if self.formula == "alpha_over_n" else self.alpha
        lucky = torch.rand(len(asked), dtype=torch.float64, generator=draws) < min(1.0, p)
        come = [i for i, taken in zip(asked, lucky.tolist(), strict=True) if taken][:before]
        gone = set(torch.randperm(before, generator=draws)[: len(come)].tolist())
        self.rows = [row for n, row in enumerate(self.rows) if n not in gone]
        self.rows += [(x[i], y[i]) for i in sorted(free + come)]
        self.buckets += 1

    @property
    def columns(self):
        return [torch.stack(column) for column in zip(*self.rows, strict=True)]


def biased(exam, *, capacity, formula, alpha=1.0, reset=False):
    net = exam.network()
    memory = Reservoir(capacity) if formula == "reservoir" else Biased(capacity, formula, alpha)
    for k in exam.rounds:
        memory.offer(exam.draws(k, "memory"), *exam.data(k))
        net = exam.network() if reset else net
        study(exam, net, k, *memory.columns)
        yield exam.after(net, k, memory.columns)


DUMB = [
    Mutant(
        "order of rounds",
        "            self.start_again(data)\n            self.study(data)",
        "            self.study(data)",
        GDumb,
    ),
    Mutant(
        "factor", "len(class_positions) * len(slots) >= max(", "len(class_positions) * 2 >= max(", ClassBalancedMemory
    ),
    Mutant("sign", "max(slots.values(), key=len)", "min(slots.values(), key=len)", ClassBalancedMemory),
]
BIASED = [
    Mutant(
        "memory before or after the step",
        "samples, x=self.memory.x, y=self.memory.y, passes=None",
        "samples, passes=None",
        BiasedReservoir,
    ),
    Mutant("factor", "self.alpha / (self.buckets + 1)", "0.1 * self.alpha / (self.buckets + 1)", BiasedReservoirMemory),
    Mutant("sign", "[len(accepted) :]", "[: len(accepted)]", BiasedReservoirMemory),
]
ANEW = Mutant("order of rounds", "if self.from_scratch:", "if False:", BiasedReservoir)
KEPT = Mutant("sign", "< self.probability", "> self.probability", BiasedReservoirMemory)
PLAIN = Mutant(
    "sign", "keys.topk(min(self.capacity, len(keys)))", "(-keys).topk(min(self.capacity, len(keys)))", ReservoirMemory
)
CHECKS = [
    vision(GDumb, dumb, DUMB, capacity=20),
    vision(BiasedReservoir, biased, BIASED, capacity=20, formula="alpha_over_n", alpha=1.5),
    vision(
        BiasedReservoir,
        biased,
        [*BIASED[:1], ANEW, KEPT],
        capacity=20,
        formula="constant",
        alpha=0.6,
        reset=True,
        title="BiasedReservoir, constant",
    ),
    vision(
        BiasedReservoir,
        biased,
        [*BIASED[:1], ANEW, PLAIN],
        capacity=20,
        formula="reservoir",
        reset=True,
        title="BiasedReservoir, reservoir",
    ),
]


def test_gdumb_and_the_biased_reservoirs_train_on_their_memory_alone():
    for check in CHECKS:
        check.conforms()
