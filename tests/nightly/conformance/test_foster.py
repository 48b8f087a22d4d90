"""FOSTER as Wang et al. 2022 state it (arXiv 2204.04662, sections 4.2 to 4.4), and as the authors' code does.

Boosting: F_t = [F_{t-1} fixed, F_new], F_new begins as F_{t-1}; L = L_LA + L_FE + L_KD (G-U-N/ECCV22-FOSTER 555c7f0,
models/foster.py:169-201, utils/inc_net.py:295-312): the logits are divided by weights of classes, from the effective
numbers of samples (models/foster.py:91-106). Compression: one network that begins as F_{t-1} learns softmax(z / T),
weighted and normalised again (lines 222-253, 312-317), without weight decay. The next round begins with it
(lines 39-40). Exemplars are chosen by the boosted network (line 70). Distillation: cross-entropy between
softmax(z / T), T = 2, no factor T^2 (lines 320-323).

Where paper and code differ: the weights of old features for new classes begin at 0 and stay there in the paper, and
learn as others do in the published settings (`oofc: ft`); so do ours. The code prints the accuracy of both networks
under the name of the boosted one; the paper's FOSTER is the compressed one, and so is ours. The code counts 500 samples
of each new class of CIFAR-100 and memory / known for the old ones; ours counts.
"""

from copy import deepcopy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import FrozenBody
from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.foster.basemodel import FOSTER
from ianvs.testalgorithms.side_by_side import GrowingLearner
from tests.nightly.conformance.exemplars import Exemplars, features_of
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision


def drawn(exam, k, purpose, inputs):
    torch.manual_seed(stream_seed(exam.seed, k, purpose))
    return nn.Linear(inputs, exam.classes)


def effective(y, classes, beta):
    numbers = [(1 - beta) / (1 - beta ** sum(label == c for label in y.tolist())) for c in classes]
    return torch.tensor([w / sum(numbers) * len(classes) for w in numbers])


def soft_cross_entropy(z, q):
    return -(q * z.log_softmax(1)).sum(1).mean()


def keep(wide, narrow, classes):
    with torch.no_grad():
        for c in classes:
            wide.weight[c, : narrow.in_features] = narrow.weight[c]
            wide.bias[c] = narrow.bias[c]


def naive(exam, *, capacity, beta, compression_beta, compression_epochs, temperature=2.0, distillation=1.0):
    net, exemplars, T = exam.network(), Exemplars(capacity), temperature
    width = net[-1].in_features
    for k in exam.rounds:
        x, y = exam.data(k)
        all_x, all_y = exemplars.with_new(x, y)
        old, seen = exam.seen(k - 1), exam.seen(k)
        if k == 1:
            optimizer = exam.sgd(net.parameters())
            for _, some in exam.batches(k, len(y)):
                optimizer.zero_grad()
                cross_entropy(net(x[some])[:, seen], y[some]).backward()
                optimizer.step()
            exemplars.choose(lambda some, net=net: features_of(net[:-1], some), x, y)
        else:
            before = deepcopy(net).eval()
            new_body, head = deepcopy(net[:-1]).train(), drawn(exam, k, "head", 2 * width)
            keep(head, net[-1], old)
            second = drawn(exam, k, "second head", width)
            optimizer = exam.sgd([*new_body.parameters(), *head.parameters(), *second.parameters()])
            w = effective(all_y, seen, beta)
            for _, some in exam.batches(k, len(all_y)):
                first, new = before[:-1](all_x[some]).detach(), new_body(all_x[some])
                z = head(torch.cat([first, new], 1))
                loss = cross_entropy(z[:, seen] / w, all_y[some]) + cross_entropy(second(new)[:, seen], all_y[some])
                q = (before[-1](first)[:, old] / T).softmax(1).detach()
                loss = loss + distillation * soft_cross_entropy(z[:, old] / T, q)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            exemplars.choose(
                lambda some, before=before, new_body=new_body: features_of(Both(before[:-1], new_body), some), x, y
            )
            student_head = drawn(exam, k, "student", width)
            keep(student_head, net[-1], old)
            net = nn.Sequential(*net[:-1], student_head).train()
            new_body.eval()
            optimizer, w = exam.sgd(net.parameters()), effective(all_y, seen, compression_beta)
            for _, some in exam.batches(k, len(all_y), compression_epochs):
                z = head(torch.cat([before[:-1](all_x[some]), new_body(all_x[some])], 1))[:, seen]
                q = ((z / T).softmax(1) * w).detach()
                q = q / q.sum(1, keepdim=True)
                optimizer.zero_grad()
                soft_cross_entropy(net(all_x[some])[:, seen] / T, q).backward()
                optimizer.step()
        yield exam.after(net, k, exemplars.columns)


class Both(nn.Module):
    def __init__(self, fixed, new):
        super().__init__()
        self.fixed, self.new = fixed, new

    def forward(self, x):
        return torch.cat([self.fixed(x), self.new(x)], 1)

    def train(self, mode=True):
        self.new.train(mode)


SLIPS = [
    Mutant("factor", "batch.logits / self.weights", "batch.logits * self.weights"),
    Mutant(
        "features of the second head", "self.f[:, -width:]), batch.y), batch", "self.f[:, :width]), batch.y), batch"
    ),
    Mutant("mask", "batch.outputs[:, self.known_index]", "batch.outputs[:, self.known_index].detach()"),
    Mutant("factor", " / self.temperature**2", ""),
    Mutant("sign", "+ self.distillation * distilled", "- self.distillation * distilled"),
    Mutant("sign", "loss + boosted", "loss - boosted"),
    Mutant("what is trained", "return [] if self.second_head is None else", "return [] if True else", GrowingLearner),
    Mutant("factor", "weights[classes]", "self.weights[classes]"),
    Mutant("missing normalisation", "(q / q.sum(1, keepdim=True) * log_p)", "(q * log_p)"),
    Mutant("what the student begins with", 'student", like=head', 'student"'),
    Mutant("what the student begins with", "student.train(), None", "student, None"),
    Mutant(
        "memory before or after the step",
        "        super().after_round(data)\n"
        "        if student is not None:\n            self.compress(student, shown)\n",
        "        known = self.known_classes\n        self.known_classes = sorted({*known, *self.new_classes})\n"
        "        if student is not None:\n            self.compress(student, shown)\n"
        "        self.known_classes = known\n        super().after_round(data)\n",
    ),
    Mutant(
        "mode of the teacher", "self.network.eval(), self.class_weights", "self.network.train(), self.class_weights"
    ),
    Mutant("factor", "beta ** n.clamp_min(1)", "beta"),
    Mutant("what is trained", "FrozenBody(last)", "last", GrowingLearner),
    Mutant("mode of fixed bodies", "super().train(False)", "super().train(mode)", FrozenBody),
]
CHECKS = [
    vision(FOSTER, naive, SLIPS, capacity=19, beta=0.9, compression_beta=0.8, compression_epochs=3, temperature=2.5)
]


def test_foster_boosts_and_compresses_as_its_paper_says():
    for check in CHECKS:
        check.conforms()
