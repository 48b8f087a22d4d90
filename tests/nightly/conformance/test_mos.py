"""MOS as Sun et al. 2025 state it (arXiv 2412.09441), beside LAMDA-PILOT 2647455, where its authors keep it.

Adapters learn on from round to round and are drawn to the mean of those of earlier rounds after each step; each round
leaves a copy. A sample looks for the copy that fits it: a class says a round, whose copy says a class, and so on.

Left open by the paper, taken from there:
- adapters as APER's, of 16 units; SGD, rate 0.03, a tenth of it for the head, decay 5e-4, 20 epochs of 48, half a
  cosine; a merging of 0.1: exps/mos.json, models/mos.py:116-138. Theirs falls after each epoch, ours after each step;
- a second loss, of weight 0.1, keeps the features of a batch apart from each other and from the means of earlier
  classes: models/mos.py `orth_loss`;
- the head learns Gaussians of all classes for 30 epochs, 240 of each, rate 0.005 along half a cosine over epochs,
  from the second round on, and the next round goes on from there: `classifer_align`;
- what is looked for first is by the cosine to means of features with the first copy, and the answer adds the softmax
  of T of these cosines; four looks at most: `replace_fc`, `_eval_cnn`.

Theirs merges after each step and once more for each block of each forward pass (backbone/vit_mos.py:348-390), as
`merge: layer` does (tests/unit/testalgorithms/test_mos_released.py); what is held to the paper here is `merge: step`,
once after each step.
"""

import copy
import math

import torch
from torch.nn.functional import cross_entropy

from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.mos.basemodel import MOS
from tests.nightly.conformance.harness import After, Mutant
from tests.nightly.conformance.pictures import Pictures, body_weights, pictures
from tests.nightly.conformance.test_aper import DECAY, Naive, cosines


def naive(exam, *, bottleneck, head_learning_rate, alignment_learning_rate, alignment_epochs, alignment_samples):
    net = exam.network()
    head, now, kept = net[-1], Naive(body_weights(net), bottleneck), []
    round_of, mean, cov, prototype = {}, {}, {}, {}
    for k in exam.rounds:
        x, y = exam.data(k)
        group = exam.group(k)
        torch.manual_seed(stream_seed(exam.seed, k, "noise"))
        steps = list(exam.batches(k, len(y)))
        slow = torch.optim.SGD(now.parameters(), exam.learning_rate, exam.momentum, weight_decay=DECAY)
        fast = torch.optim.SGD(head.parameters(), head_learning_rate, exam.momentum, weight_decay=DECAY)
        now.train()
        for i, (_, some) in enumerate(steps):
            share = (1 + math.cos(math.pi * i / len(steps))) / 2
            slow.param_groups[0]["lr"], fast.param_groups[0]["lr"] = (
                exam.learning_rate * share,
                head_learning_rate * share,
            )
            f = now(x[some])
            loss = cross_entropy(head(f)[:, group], y[some] - group[0])
            rows = [mean[c] for c in sorted(mean)] + [*f]
            for row in rows:
                dots = torch.stack([row @ other for other in rows]) / 0.8
                loss = loss + 0.1 * (dots.logsumexp(0) - row @ row / 0.8) / len(rows)
            for one in (slow, fast):
                one.zero_grad()
            loss.backward()
            for one in (slow, fast):
                one.step()
            for place, p in enumerate(now.parameters()):
                if kept:
                    p.data = 0.9 * p.data + 0.1 * sum([*one.parameters()][place].data for one in kept) / len(kept)
        kept.append(copy.deepcopy(now.eval()))
        for c in group:
            f = now(x[y == c]).detach().double()
            d = f - f.mean(0)
            round_of[c], mean[c], prototype[c] = k, f.mean(0).float(), kept[0](x[y == c]).detach().double().mean(0)
            cov[c] = sum(torch.outer(one, one) for one in d) / (len(f) - 1) + 1e-4 * torch.eye(f.shape[1])
        if k > 1:
            align(exam, head, k, mean, cov, alignment_learning_rate, alignment_epochs, alignment_samples)
        z = torch.stack([answer(one[None], head, kept, prototype, round_of) for one in exam.test])
        parts = [p for one in kept for p in one.parameters()]
        yield After([p.detach().clone() for p in (*parts, *head.parameters(), z)], [], z.argmax(1).numpy())


def align(exam, head, k, mean, cov, rate, epochs, n):
    draws = exam.draws(k, "alignment")
    optimizer = torch.optim.SGD(head.parameters(), rate, exam.momentum, weight_decay=DECAY)
    for epoch in range(epochs):
        optimizer.param_groups[0]["lr"] = rate * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
        samples = []
        for c in exam.seen(k):
            L = torch.linalg.cholesky(cov[c]).float()
            samples += [(mean[c] + L @ z, c) for z in torch.randn(n, len(L), generator=draws)]
        order = torch.randperm(len(samples), generator=draws).tolist()
        for start in range(0, len(order), n):
            part = [samples[i] for i in order[start : start + n]]
            optimizer.zero_grad()
            z = head(torch.stack([f for f, _ in part]))[:, : len(mean)]
            cross_entropy(z, torch.tensor([c for _, c in part])).backward()
            optimizer.step()


@torch.no_grad()
def answer(x, head, kept, prototype, round_of):
    """(classes so far,) the logarithm of the sum of two softmaxes, for one sample (1, ...)."""
    near = cosines(kept[0](x).double(), torch.stack([prototype[c] for c in sorted(prototype)]))[0]
    said = int(near.argmax())
    for _ in range(4):
        before = round_of[said]
        z = head(kept[before - 1](x))[0, : len(prototype)]
        said = int(z.argmax())
        if round_of[said] == before:
            break
    return (z.softmax(0) + (len(kept) * near).softmax(0)).log().float()


def seen(learner):
    body, head = learner.network
    parts = []
    for adapters in body.round_adapters:
        parts += [a.down.weight for a in adapters] + [a.up.weight for a in adapters]
        parts += [a.down.bias for a in adapters] + [a.up.bias for a in adapters]
    z = learner.each(EXAM.test, lambda x: learner.answers(x, None))
    return [*parts, head.weight, head.bias, z[:, sorted(learner.prototypes)]]


SLIPS = [
    Mutant("factor", "p.lerp_(mean, self.merging)", "p.lerp_(mean, 0.2)"),
    Mutant("order of rounds", "(p, torch.stack(same).mean(0))", "(p, same[-1].clone())"),
    Mutant(
        "order of rounds", "body.encoded(body.round_adapters[0], 0, x))", "body.encoded(body.round_adapters[-1], 0, x))"
    ),
    Mutant("factor", "self.contrast * cross_entropy", "cross_entropy"),
    Mutant("factor", "M @ M.T / CLOSE", "M @ M.T"),
    Mutant("what is kept apart", "torch.cat([self.means.to(f), f])", "f"),
    Mutant("factor", '"temperature": None', '"temperature": 0.1'),
    Mutant("factor", '"drift": 0.0', '"drift": 0.1'),
    Mutant("factor", "self.alignment_rate = alignment_learning_rate", "pass"),
    Mutant("factor", "self.grown * normalize", "normalize"),
    Mutant("looks", "range(LOOKS - 1)", "range(0)"),
    Mutant(
        "answers", "torch.logaddexp(log_softmax(z[rows, i], 1), log_softmax(near, 1))", "log_softmax(z[rows, i], 1)"
    ),
    Mutant("factor", '"decay": "cosine"', '"decay": "none"'),
]
EXAM = Pictures(learning_rate=1.0)
OPTIONS = {"head_learning_rate": 0.02, "alignment_learning_rate": 0.01, "alignment_epochs": 2, "alignment_samples": 8}
CHECKS = [pictures(MOS, naive, SLIPS, seen, exam=EXAM, bottleneck=5, **OPTIONS)]


def test_mos_merges_adapters_and_looks_for_a_samples_own_as_its_paper_says():
    for check in CHECKS:
        check.conforms()
