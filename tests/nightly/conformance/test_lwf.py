"""LwF as Li & Hoiem 2017 state it: eq. 1 to 3, the warm-up of fig. 3, a head for each task (section 3).

L = L_new + the sum over old tasks of the cross-entropy between what the old network and the new one say with the head
of that task, each with shares to the power 1 / T and scaled to 1 again: a softmax of outputs / T. The authors' code
(lizhitwo/LearningWithoutForgetting 795176d, vl_nnsoftmaxdiff.m:79-81 and :128-132) takes no T^2 either and weighs each
old task by the same lambda (snippets/PASCALkeeporig.m:456). Ours has the T^2 of Hinton et al. 2015: an alpha of 1 / T^2
is the paper's 1. It also takes off the entropy of what is told, which has no gradient.

The paper has no single head: there the classes of all earlier rounds are one, as in Avalanche eb075be,
avalanche/training/regularization.py:97-115. The old network is in evaluation mode (GMvandeVen/continual-learning
e6d795a, train/train_task_based.py:395).

weighting "rounds" is what GMvandeVen/continual-learning e6d795a does: models/classifier.py:211-213 and :280-281 add to
the loss of the new samples a mean over tasks times k - 1 (task-incremental), one term times k - 1 (domain-) or once
(class-incremental). models/utils/loss_functions.py:12-40: no T^2; old classes are told, and 0 for new ones. Said ones
are all active classes; where that is "all", the default (params/options.py:147), all are told, too
(train/train_task_based.py:268-271).
"""

import copy
from dataclasses import dataclass, replace

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import TorchLearner, distillation_loss
from ianvs.testalgorithms.lwf.basemodel import LwF
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import EXAM, Exam, vision

TOLD = replace(EXAM, told=True)


@dataclass(frozen=True)
class Returning(Exam):
    """Tasks that share a class with the task before."""

    def group(self, k):
        return [[0, 1], [1, 2], [0, 3]][k - 1]

    def seen(self, k):
        return [[0, 1], [0, 1, 2], [0, 1, 2, 3]][k - 1]


@dataclass(frozen=True)
class Domains(Exam):
    """All classes in each round."""

    def group(self, k):
        return list(range(self.classes))

    seen = group


def soft_cross_entropy(told, said):
    return -(told * said.log()).sum(1).mean()


def softened(z, T):
    shares = z.softmax(1) ** (1 / T)
    return shares / shares.sum(1, keepdim=True)


def warm_up(exam, net, k, x, y, epochs):
    """Fig. 3: the new head alone, of fixed features; by plain gradient descent, which the paper leaves open."""
    *body, head = net.eval()
    with torch.no_grad():
        features = x
        for layer in body:
            features = layer(features)
    own = sorted(set(y.tolist()))
    for _, some in exam.batches(k, len(y), epochs):
        z = features[some] @ head.weight.T + head.bias
        loss = cross_entropy(z[:, own], torch.tensor([own.index(c) for c in y[some].tolist()]))
        weight, bias = torch.autograd.grad(loss, [head.weight, head.bias])
        with torch.no_grad():
            head.weight -= exam.learning_rate * weight
            head.bias -= exam.learning_rate * bias
    net.train()


def naive(exam, *, alpha, temperature=2.0, alpha_growth=0.0, head_epochs=0):
    net = exam.network()
    for k in exam.rounds:
        x, y = exam.data(k)
        old_heads = [] if k == 1 else [exam.group(j) for j in range(1, k)] if exam.told else [exam.seen(k - 1)]
        before = copy.deepcopy(net).eval()
        if old_heads and head_epochs:
            warm_up(exam, net, k, x, y, head_epochs)
        optimizer = exam.sgd(net.parameters())
        for _, some in exam.batches(k, len(y)):
            z = net(x[some])
            with torch.no_grad():
                z_old = before(x[some])
            loss = cross_entropy(z + exam.mask(k), y[some])
            for head in old_heads:
                pair = (softened(each[:, head], temperature) for each in (z_old, z))
                loss = loss + (alpha + alpha_growth * max(0, k - 2)) * temperature**2 * soft_cross_entropy(*pair)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield exam.after(net, k)


def van_de_ven(exam, *, active="all"):
    """active: the outputs that are trained in class-incremental learning, "all" or "all-so-far"."""
    net, T, everything = exam.network(), 2.0, list(range(exam.classes))
    for k in exam.rounds:
        x, y = exam.data(k)
        before = copy.deepcopy(net).eval()
        optimizer = exam.sgd(net.parameters())
        now = exam.seen(k) if active == "all-so-far" else everything
        then = exam.seen(k - 1) if active == "all-so-far" and k > 1 else everything
        for _, some in exam.batches(k, len(y)):
            z = net(x[some])
            with torch.no_grad():
                z_old = before(x[some])
            own = exam.group(k) if exam.told else now
            loss = cross_entropy(z[:, own], torch.tensor([own.index(c) for c in y[some].tolist()]))
            if k > 1 and exam.told:
                heads = [exam.group(j) for j in range(1, k)]
                losses = [soft_cross_entropy(*((v[:, h] / T).softmax(1) for v in (z_old, z))) for h in heads]
                loss = loss + sum(losses) / len(losses) * (k - 1)
            elif k > 1:
                told = torch.zeros(len(some), len(now))
                told[:, [now.index(c) for c in then]] = (z_old[:, then] / T).softmax(1)
                replayed = soft_cross_entropy(told, (z[:, now] / T).softmax(1))
                loss = loss + replayed * (k - 1 if isinstance(exam, Domains) else 1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield exam.after(net, k)


SLIPS = [
    Mutant("sign", "loss + self.weight", "loss - self.weight"),
    Mutant("factor", "* temperature**2", "* temperature", distillation_loss),
    Mutant("old network in training mode", "deepcopy(self.network).eval()", "deepcopy(self.network)"),
    Mutant("old and new network", "(z + self.now, z_old + self.then", "(z_old + self.then, z + self.now"),
]
LATE = Mutant("order of rounds", "self.heads = heads", "self.heads = self.then.cpu()")
SINGLE = [
    *SLIPS,
    LATE,
    Mutant("mask", "torch.full_like(heads, -1e30).index_fill", "torch.full_like(heads, 0.0).index_fill"),
]
HEADS = [
    *SLIPS,
    LATE,
    Mutant("one head", ".unique(dim=0)", ".amax(0, keepdim=True)"),
    Mutant("last head", "torch.cat([self.heads, heads])", "torch.cat([heads])"),
]
FIRST = [
    *SLIPS,
    Mutant("factor", "max(0, self.rounds - 1)", "self.rounds"),
    Mutant("fewer epochs", "data, self.head_epochs)", "data, self.head_epochs - 1)"),
    Mutant("mask", "cross_entropy(head(x) + mask, y)", "cross_entropy(head(x), y)", TorchLearner),
]
ROUNDS = [
    *SLIPS,
    Mutant("factor", "*= self.rounds if", "*= self.rounds + 1 if"),
]
CLASSES = [
    *SLIPS,
    Mutant("factor", "{*self.known_classes} else 1", "{*self.known_classes} else self.rounds"),
]
SO_FAR = [*CLASSES, LATE, Mutant("mask", "self.now = self.round_head\n", "pass\n")]


def rounds(title, exam, mutants, options=None, **theirs):
    options = {"weighting": "rounds", "alpha": 0.25, **(options or {})}
    return vision(LwF, van_de_ven, mutants, title=title, exam=exam, naive_options=theirs, **options)


CHECKS = [
    vision(LwF, naive, SINGLE, alpha=0.5),
    vision(LwF, naive, SINGLE, title="LwF, T = 3", alpha=0.5, temperature=3.0),
    vision(LwF, naive, FIRST, title="LwF, head first", alpha=0.3, alpha_growth=0.4, head_epochs=2),
    vision(LwF, naive, HEADS, title="LwF, tasks", exam=TOLD, alpha=0.5),
    vision(LwF, naive, HEADS, title="LwF, tasks that share classes", exam=Returning(told=True), alpha=0.5),
    vision(LwF, naive, SLIPS, title="LwF, domains", exam=Domains(), alpha=0.5),
    rounds("LwF of van de Ven, tasks", TOLD, HEADS),
    rounds("LwF of van de Ven, domains", Domains(), ROUNDS),
    rounds("LwF of van de Ven, classes", EXAM, CLASSES, {"mask_unseen": False}),
    rounds("LwF of van de Ven, classes so far", EXAM, SO_FAR, active="all-so-far"),
]


def test_lwf_goes_where_its_papers_loss_goes():
    for check in CHECKS:
        check.conforms()
