"""Bias correction as Wu et al. 2019 state it (arXiv 1905.13260, sections 3 to 5).

Stage 1: L = lambda L_d + (1 - lambda) L_c, lambda = C_old / C_seen; L_d the cross-entropy between softmax(q / 2) of the
old network, corrected, and softmax(z / 2) of this one over old classes, no factor T^2. Stage 2: alpha and beta for the
new classes on held-out samples, the network fixed (wuyuebupt/LargeScaleIncrementalLearning 7f687a3, resnet.py:550-609,
622-637, imagenet_main.py:386-394, 436-455). beta has a penalty of .1 beta^2 / 2 there, which the paper leaves out; the
rate falls at 30, 60, 80 and 90 % of the epochs.

Where codes differ: the authors keep the held-out samples apart from the exemplars for ever, PyCIL 87cc411 draws them
anew in each round from exemplars and new samples (models/bic.py:43-60, utils/data_manager.py:130-180), and so do we. It
keeps the correction of each round under the next ones and takes the softmax twice in stage 2 (models/bic.py:118); the
authors' code and Mammoth e75a491 (models/bic.py:54-62, 119-150) correct the newest classes only, and so do we.
"""

from copy import deepcopy

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import ExemplarLearner
from ianvs.testalgorithms.bic.basemodel import BiC
from tests.nightly.conformance.exemplars import Exemplars, features_of
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision


def naive(exam, *, capacity, held_out, correction_epochs, temperature=2.0):
    net, exemplars, T = exam.network(), Exemplars(capacity), temperature
    alpha, beta = torch.ones(()), torch.zeros(())
    for k in exam.rounds:
        x, y = exam.data(k)
        all_x, all_y = exemplars.with_new(x, y)
        before, optimizer = deepcopy(net).eval(), exam.sgd(net.parameters())
        old, new, seen, held = exam.seen(k - 1), exam.group(k), exam.seen(k), []
        if k > 1:
            n, draws = max(1, int(held_out * capacity / len(old))), exam.draws(k, "held out")
            n = min([n, *((all_y == c).sum().item() // 2 for c in seen)])
            for c in seen:
                of_class = [i for i, label in enumerate(all_y.tolist()) if label == c]
                held += [of_class[i] for i in torch.randperm(len(of_class), generator=draws).tolist()[:n]]
        rest = [i for i in range(len(all_y)) if i not in held]
        train_x, train_y = all_x[rest], all_y[rest]
        for _, some in exam.batches(k, len(rest)):
            z = net(train_x[some])
            loss = cross_entropy(z[:, seen], train_y[some])
            if k > 1:
                q = before(train_x[some]).detach()
                if k > 2:
                    q[:, exam.group(k - 1)] = alpha * q[:, exam.group(k - 1)] + beta
                soft = (q[:, old] / T).softmax(1)
                kept = -(soft * (z[:, old] / T).log_softmax(1)).sum(1).mean()
                loss = len(old) / len(seen) * kept + len(new) / len(seen) * loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        alpha, beta = torch.tensor(1.0, requires_grad=True), torch.tensor(0.0, requires_grad=True)
        if k > 1:
            net.eval()
            with torch.no_grad():
                z = net(all_x[held])[:, seen]
            net.train()
            optimizer = exam.sgd([alpha, beta])
            for epoch, some in exam.batches(k, len(held), correction_epochs):
                drops = sum(epoch >= round(share * correction_epochs) for share in (0.3, 0.6, 0.8, 0.9))
                optimizer.param_groups[0]["lr"] = exam.learning_rate * 0.1**drops
                q = torch.cat([z[some][:, : len(old)], alpha * z[some][:, len(old) :] + beta], 1)
                loss = cross_entropy(q, all_y[held][some]) + 0.1 * beta**2 / 2
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        alpha, beta = alpha.detach(), beta.detach()
        exemplars.choose(lambda some: features_of(net[:-1], some), x, y)
        net.eval()
        with torch.no_grad():
            q = net(exam.test) + exam.mask(k)
        net.train()
        if k > 1:
            q[:, new] = alpha * q[:, new] + beta
        yield exam.after(net, k, exemplars.columns, [torch.stack([alpha, beta])], answers=q.argmax(1).numpy())


SLIPS = [
    Mutant("factor", "share = len(self.known_classes)", "share = len(self.new_classes)"),
    Mutant("factor", " / self.temperature**2", ""),
    Mutant(
        "what the teacher says",
        "return self.q(super().teacher_logits(x), *self.taught)",
        "return super().teacher_logits(x)",
    ),
    Mutant("mask", "self.marked(self.new_classes, held", "self.marked(self.known_classes, held"),
    Mutant("sign", "+ OF_BETA * pair", "- OF_BETA * pair"),
    Mutant("rate", "milestones=drops", "milestones=()"),
    Mutant(
        "what is held out", "return replace(shown, x=shown.x[rest.to(shown.x.device)], y=shown.y[rest])", "return shown"
    ),
    Mutant("order of rounds", "self.pair, self.corrected = torch.tensor([1.0, 0.0]), []\n        if", "if"),
    Mutant("answers", "return q if mask is None", "q = self.logits(x)\n        return q if mask is None"),
    Mutant("mode of the teacher", ".eval().requires_grad_(False)", ".requires_grad_(False)", ExemplarLearner),
]
CHECKS = [
    vision(
        BiC,
        naive,
        SLIPS,
        more=lambda learner: [learner.pair],
        capacity=19,
        held_out=0.25,
        correction_epochs=20,
        temperature=2.5,
    )
]


def test_bic_holds_out_and_corrects_as_its_paper_says():
    for check in CHECKS:
        check.conforms()
