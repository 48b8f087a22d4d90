"""SLCA as Zhang et al. 2023 state it (arXiv 2303.05118).

A slow body and a fast head learn each round by the cross-entropy of its own classes; then a copy of the head learns
Gaussians of the features of all classes, with logits divided by their mean length over rounds and by a temperature.

Left open by the paper, taken from the authors' code (GengDavid/SLCA 169d4e6, models/slca.py):
- means are drawn nearer to 0 the older the class, by 0.9 + 0.1 t / T: lines 211-213;
- 256 of each class are drawn anew for each of 5 epochs, and are a batch; SGD with momentum, the rate along half a
  cosine over the epochs: lines 190-205, 227-229;
- covariances with 1e-4 on their diagonal: models/base.py:262;
- the rows of other rounds do not move, nor by decay; after the round is tested, the head is what it was before the
  alignment: convs/linears.py `update` and `recall`, models/slca.py:79-82; nothing is aligned in the first round: 114.

LAMDA-PILOT (2647455, models/slca.py) is the same, with batches of 64 and three epochs of alignment. Their rows begin
normal with deviation .02, ours as torch's, uniform within 1 / sqrt(D).
"""

import math

import torch
from torch.nn.functional import cross_entropy

from ianvs.testalgorithms.slca.basemodel import SLCA
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision

DECAY = 5e-4


def naive(exam, *, head_learning_rate, alignment_epochs, alignment_samples, milestones, temperature=0.1):
    net = exam.network()
    body, head = net[:-1], net[-1]
    before = [p.detach().clone() for p in head.parameters()]
    round_of, mean, cov = {}, {}, {}
    for k in exam.rounds:
        x, y = exam.data(k)
        group = exam.group(k)
        for p, old in zip(head.parameters(), before, strict=True):
            p.data.copy_(old)
        slow = torch.optim.SGD(body.parameters(), exam.learning_rate, exam.momentum, weight_decay=DECAY)
        fast = torch.optim.SGD(head.parameters(), head_learning_rate, exam.momentum, weight_decay=DECAY)
        for epoch, some in exam.batches(k, len(y)):
            drop = 0.1 ** sum(epoch >= m for m in milestones)
            slow.param_groups[0]["lr"], fast.param_groups[0]["lr"] = (
                exam.learning_rate * drop,
                head_learning_rate * drop,
            )
            loss = cross_entropy(net(x[some])[:, group], y[some] - group[0])
            for one in (slow, fast):
                one.zero_grad()
            loss.backward()
            for one in (slow, fast):
                one.step()
        for p, old in zip(head.parameters(), before, strict=True):
            for c in range(exam.classes):
                if c in group:
                    old[c] = p.data[c]
                p.data[c] = old[c]
        net.eval()
        for c in group:
            f = body(x[y == c]).detach().double()
            d = f - f.mean(0)
            round_of[c], mean[c] = k, f.mean(0).float()
            cov[c] = sum(torch.outer(one, one) for one in d) / (len(f) - 1) + 1e-4 * torch.eye(f.shape[1])
        if k > 1:
            align(
                exam, head, k, round_of, mean, cov, head_learning_rate, alignment_epochs, alignment_samples, temperature
            )
        net.train()
        yield exam.after(net, k, more=before)


def align(exam, head, k, round_of, mean, cov, rate, epochs, n, temperature):
    draws = exam.draws(k, "alignment")
    optimizer = torch.optim.SGD(head.parameters(), rate, exam.momentum, weight_decay=DECAY)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = rate * 0.5 * (1 + math.cos(math.pi * epoch / epochs))
        samples = []
        for c in exam.seen(k):
            L = torch.linalg.cholesky(cov[c]).float()
            for z in torch.randn(n, len(L), generator=draws):
                samples.append((mean[c] * (0.9 + 0.1 * round_of[c] / k) + L @ z, c))
        order = torch.randperm(len(samples), generator=draws).tolist()
        for start in range(0, len(order), n):
            part = [samples[i] for i in order[start : start + n]]
            z = head(torch.stack([f for f, _ in part]))[:, : 2 * k]
            if temperature is not None:
                length = sum(z[:, exam.group(t)].pow(2).sum(1).sqrt() + 1e-7 for t in range(1, k + 1)) / k
                z = z / length[:, None] / temperature
            optimizer.zero_grad()
            cross_entropy(z, torch.tensor([c for _, c in part])).backward()
            optimizer.step()


SLIPS = [
    Mutant("mask", "logits=batch.logits + self.class_mask", "logits=batch.logits"),
    Mutant("order of rounds", "head.load_state_dict(self.plain)\n        self.class_mask", "self.class_mask"),
    Mutant("decay of other rows", "head.load_state_dict(self.plain)\n        self.take_up", "self.take_up"),
    Mutant("sign", "1 - self.drift * (1 - t / self.rounds)", "1 + self.drift * (1 - t / self.rounds)"),
    Mutant("factor", "1e-4 * torch.eye", "1e-2 * torch.eye"),
    Mutant("first epoch only", "noise @ L.T", "noise @ L.T * (epoch == 0)"),
    Mutant("factor", "rate / 2 * (1 + math", "rate * (1 + math"),
]
LENGTHS = Mutant("factor", "lengths.mean(1, keepdim=True)", "lengths.sum(1, keepdim=True)")
OPTIONS = {"head_learning_rate": 0.02, "alignment_epochs": 2, "alignment_samples": 8, "milestones": (1,)}
WHY = "logits are divided by their length and by 0.1, which makes what is rounded many times as large"
CHECKS = [
    vision(
        SLCA,
        naive,
        [*SLIPS, LENGTHS],
        more=lambda learner: [*learner.plain.values()],
        tolerance=1e-5,
        why=WHY,
        **OPTIONS,
    ),
    vision(
        SLCA,
        naive,
        SLIPS[:3],
        more=lambda learner: [*learner.plain.values()],
        title="SLCA without a temperature",
        temperature=None,
        **OPTIONS,
    ),
]


def test_slca_learns_slowly_and_aligns_its_head_as_its_authors_code_does():
    for check in CHECKS:
        check.conforms()
