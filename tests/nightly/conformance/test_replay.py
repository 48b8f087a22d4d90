"""Experience replay as Chaudhry et al. 2019 (arXiv 1902.10486) state it in algorithm 1: a step on the mean loss of the
batch and of as many samples drawn from the memory.

Left open, as the paper has one pass over a stream: when a memory is filled else. By itself after the round, so that all
that comes back is old; "during_round" is the stream of the algorithm; "every_step" is Mammoth 7ab9db9,
models/er.py:32-49, where each epoch offers its samples again, after the step. There no output is masked; here those of
classes to come are, unless mask_unseen is false. Samples come back without replacement, the whole memory where it is
smaller (utils/buffer.py:99-105).
weighting "rounds": van de Ven et al. 2022, Methods; their code e6d795a, models/classifier.py:283 (1/k of the new loss,
1 - 1/k of the old one, train/train_task_based.py:307). It has two forward passes, old samples first (:167, :241); ours
has one over both, so that batch normalisation sees them together.
"""

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import ClassBalancedMemory, PerRoundMemory, ReplayLearner, ReservoirMemory, TorchLearner
from ianvs.testalgorithms.replay.basemodel import Replay
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.naive_memories import Balanced, PerRound, Reservoir
from tests.nightly.conformance.vision import vision

MEMORIES = {"reservoir": Reservoir, "balanced": Balanced, "per_round": PerRound}


def naive(
    exam,
    *,
    capacity,
    selection="reservoir",
    fill="after_round",
    weighting="samples",
    replay_batch=None,
    mask_unseen=True,
):
    net = exam.network()
    memory = MEMORIES[selection](capacity, **({"in_place": fill != "after_round"} if selection == "reservoir" else {}))
    for k in exam.rounds:
        x, y = exam.data(k)
        mask = exam.mask(k) if mask_unseen else torch.zeros(exam.classes)
        optimizer, old, keys = exam.sgd(net.parameters()), exam.draws(k, "replay"), exam.draws(k, "memory")
        for epoch, some in exam.batches(k, len(y)):
            n, all_x, all_y = len(some), x[some], y[some]
            if len(memory):
                old_x, old_y = memory.drawn(replay_batch or n, old)
                all_x, all_y = torch.cat([all_x, old_x]), torch.cat([all_y, old_y])
            losses = cross_entropy(net(all_x) + mask, all_y, reduction="none")
            loss = losses.sum() / len(losses)
            if weighting == "rounds" and len(losses) > n:
                loss = 1 / k * losses[:n].mean() + (1 - 1 / k) * losses[n:].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if fill == "every_step" or (fill == "during_round" and epoch == 0):
                memory.offer(keys, x[some], y[some])
        if fill == "after_round":
            memory.offer(keys, x, y)
        yield exam.after(net, k, [c for part in getattr(memory, "parts", [memory]) for c in part.columns])


COMMON = [
    Mutant("mask", "self.mask_unseen = mask_unseen", "self.mask_unseen = not mask_unseen", TorchLearner),
    Mutant("factor", "self.recall(len(y))", "tuple(c[1:] for c in self.recall(len(y)))"),
    Mutant("order of rounds", 'data.generator("replay"), data', "torch.Generator(), data", ReplayLearner),
]
EACH_STEP = [
    *COMMON,
    Mutant("first epoch only", 'self.fill == "every_step"', 'self.fill == "during_round"', ReplayLearner),
    Mutant(
        "memory before or after the step",
        "self.new = len(y)",
        "self.new = len(y); self.after_step(x, y, 1, 0); self.fill = ''",
    ),
    Mutant("keys drawn anew", "torch.cat([self._keys, drawn])", "torch.rand(len(self) + len(y))", ReservoirMemory),
]
CHECKS = [
    vision(
        Replay,
        naive,
        [
            *COMMON,
            Mutant("draws", "randperm(count, generator=self._draws)", "arange(count)", ReplayLearner),
            Mutant("order of the memory", ".indices.sort().values", ".indices", ReservoirMemory),
        ],
        capacity=20,
    ),
    vision(
        Replay,
        naive,
        [
            *EACH_STEP[:3],
            Mutant("first epoch only", " and epoch == 0", "", ReplayLearner),
            Mutant(
                "memory before or after the step",
                "self.new = len(y)",
                "self.new = len(y); self.after_step(x, y, 0, -2)",
            ),
        ],
        title="Replay, during the round",
        capacity=20,
        fill="during_round",
        mask_unseen=False,
    ),
    vision(Replay, naive, EACH_STEP, title="Replay, every step", capacity=7, fill="every_step", replay_batch=5),
    vision(
        Replay,
        naive,
        [
            *COMMON[:2],
            Mutant("factor", "1 / self.data.round", "1 / (self.data.round + 1)"),
            Mutant("order of rounds", "(1 - share) * losses[self.new :]", "(1 - share) * losses[: self.new]"),
        ],
        title="Replay, rounds weighted",
        capacity=20,
        weighting="rounds",
        replay_batch=3,
    ),
    vision(
        Replay,
        naive,
        [
            *COMMON,
            Mutant("ties", "max(slots.values()", "max(reversed(slots.values())", ClassBalancedMemory),
            Mutant(
                "factor",
                "len(class_positions) * len(slots) >=",
                "len(class_positions) * len(slots) >",
                ClassBalancedMemory,
            ),
            Mutant("draws", "int(torch.randint(len(most), (1,), generator=generator))", "0", ClassBalancedMemory),
        ],
        title="Replay, balanced",
        capacity=20,
        selection="balanced",
    ),
    vision(
        Replay,
        naive,
        [
            *COMMON,
            Mutant("order of rounds", "self.parts.append(part)", "self.parts = [part]", PerRoundMemory),
            Mutant("order of rounds", "self.parts.append(part)", "self.parts.insert(0, part)", PerRoundMemory),
        ],
        title="Replay, so many of each round",
        capacity=6,
        selection="per_round",
    ),
]


def test_replay_goes_where_the_papers_algorithm_goes():
    for check in CHECKS:
        check.conforms()
