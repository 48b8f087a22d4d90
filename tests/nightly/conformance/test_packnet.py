"""PackNet as Mallya & Lazebnik 2018 state it (arXiv 1711.05769, section 3), where the task is told.

A task trains all weights that no task owns, beside the fixed ones of earlier tasks. Then in each layer the share of its
weights that is smallest in size becomes 0 and is free for later tasks, the others are trained once more and are its own
for good. Answers for a task use the weights of it and of earlier tasks. Biases and normalisation are the first task's.
Each task has its own head.

arunmallya/packnet 7b6032c, src/prune.py:34 rounds the number of weights that are given up, to the nearest. src/main.py:
247-257 trains the pruned network with a new optimiser and as many epochs as it is told; ours keeps one optimiser for a
task, whose last `retrain` of its steps come after the cut. src/prune.py:86-92 stops the gradient of what is fixed, so
that with momentum or decay of weights it may still move; here nothing that is fixed ever moves.
"""

import copy
from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy

from ianvs.testalgorithms.packnet.basemodel import PackNet
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import EXAM, vision


def naive(exam, *, prune=0.75, retrain=0.3):
    net = exam.network()
    body, head = list(net[:-1].parameters()), net[-1]
    owner = [torch.zeros(p.shape, dtype=torch.int16) for p in body]  # 0: free
    for k in exam.rounds:
        x, y = exam.data(k)
        own = torch.tensor(exam.group(k))
        mine = [free == 0 for free in owner]
        net.train()
        for module in net[:-1] if k > 1 else []:
            module.eval()
        optimizer = exam.sgd(net.parameters())
        steps = list(exam.batches(k, len(y)))
        for step, (_, some) in enumerate(steps, 1):
            loss = cross_entropy(net(x[some])[:, own], y[some] - own[0])
            optimizer.zero_grad()
            loss.backward()
            before = [p.detach().clone() for p in body]
            optimizer.step()
            for p, was, m in zip(body, before, mine, strict=True):
                p.data[~m] = was[~m]
            if step == len(steps) - int(retrain * len(steps)):
                for p, m, o in zip(body, mine, owner, strict=True):
                    if p.dim() > 1:
                        sizes = sorted((abs(p[i, j].item()), i, j) for i, j in m.nonzero().tolist())
                        for _, i, j in sizes[: round(prune * len(sizes))]:
                            p.data[i, j] = 0.0
                            m[i, j] = False
                    o[m] = k
        first = copy.deepcopy(net)  # what the first task is answered with
        for p, o in zip(first[:-1].parameters(), owner, strict=True):
            p.data[o > 1] = 0.0
        assert head is net[-1]
        yield exam.after(net, k, more=owner, answers=exam.answers(first, k))


SLIPS = [
    Mutant("first epoch only", "int(self.retrain * self.left)", "self.left // 2"),
    Mutant("factor", "self.prune * int(", "0.9 * int("),
    Mutant("rounded down", "n = round(", "n = int("),
    Mutant("sign", "largest=False", "largest=True"),
    Mutant("order of rounds", "== 0 for name, p in body}", "<= 1 for name, p in body}"),
    Mutant("mask", "> self.task)", "> self.task + 9)"),
    Mutant("normalisation goes on", "len(self.tasks) > 1 and", "False and"),
    Mutant("memory before or after the step", "self.fixed[p].masked_fill_(small.view(p.shape), 0.0)", "pass"),
]


def owners(learner):
    return list(learner.owners.values())


TOLD = replace(EXAM, told=True)
CHECKS = [
    vision(PackNet, naive, SLIPS, exam=TOLD, more=owners, prune=0.7),
    vision(
        PackNet,
        naive,
        SLIPS[1:6],
        title="PackNet, half",
        exam=replace(TOLD, batch_norm=False),
        more=owners,
        prune=0.45,
        retrain=0.0,
    ),
]


def test_packnet_goes_where_its_paper_goes():
    for check in CHECKS:
        check.conforms()
