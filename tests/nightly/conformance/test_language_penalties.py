"""EWC, LwF and O-LoRA on conversations.

EWC (Kirkpatrick et al. 2017, eq. 3): L_new + strength / 2 sum_k sum_i F_k,i (theta_i - theta*_k,i)^2, k over earlier
rounds; online (Schwarz et al. 2018, section 4): one anchor at the latest weights, F <- gamma F + F_new. F is the mean
over conversations of the squared gradient of the log-likelihood of all that the assistant says in one, after the round.
Continual-NExT 3658f2d squares the mean gradient of a batch, and its penalty has no gradient
(swift/trainers/trainers.py:682-840).

LwF (Li & Hoiem 2017, eq. 2 and 3): L_new + alpha T^2 KL(softmax(z_old / T) || softmax(z / T)), a mean over learnt
tokens of the new conversations; z_old is what the weights of before the round say at the same positions. Continual-
NExT has alpha = .001 and lines both up from the left (trainers.py:593-604).

O-LoRA (Wang et al. 2023, arXiv 2310.14152, section 3.2): y = W x + s sum_i B_i A_i x, only the newest learns, and
L = L_new + lambda_1 sum_{i<t} L_orth(A_i, A_t) + lambda_2 (|A_t| + |B_t|). The paper's L_orth is the sum of squares of
A_i A_t^T; the authors' code (cmnfriend/O-LoRA 07117e1, src/uie_trainer_lora.py:91-109) sums absolute values, which is
our default, and adds lambda_2 times Euclidean norms of single matrices. Old rows and new ones are joined after a round
(src/peft/utils/save_and_load.py:38-51), A begins uniform and B at 0 (src/peft/tuners/lora.py:504-506).
"""

import copy
import math

import pytest
import torch

pytest.importorskip("transformers")

from ianvs.authoring import Anchor, distillation_loss
from ianvs.authoring.fisher import with_anchor
from ianvs.testalgorithms.language.ewc.basemodel import EWC
from ianvs.testalgorithms.language.lwf.basemodel import LwF
from ianvs.testalgorithms.language.olora.basemodel import OLD, OLoRA
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.language import Exam, language, scores, surprise, with_adapters

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # within peft


def ewc(exam, *, strength, gamma=None):
    net = exam.network()
    weights, anchors = list(net.parameters()), []  # anchors: (theta*, F) of each round
    for k in exam.rounds:

        def loss(some, anchors=anchors):
            total = surprise(net, some)
            for star, fisher in anchors:
                for w, s, f in zip(weights, star, fisher, strict=True):
                    total = total + strength / 2 * (f * (w - s) ** 2).sum()
            return total

        talks = exam.talks(k)
        exam.descend(k, talks, weights, loss)
        fisher = [torch.zeros_like(w) for w in weights]
        for talk in talks:
            z, right = scores(net, [talk])
            likelihood = z.log_softmax(1)[range(len(right)), right].sum()
            for f, g in zip(fisher, torch.autograd.grad(likelihood, weights), strict=True):
                f += g**2 / len(talks)
        if gamma is not None and anchors:
            fisher = [gamma * old + new for old, new in zip(anchors[0][1], fisher, strict=True)]
        anchors = [*(anchors if gamma is None else []), ([w.detach().clone() for w in weights], fisher)]
        yield exam.after(net, more=[torch.cat([part.flatten() for part in one]) for a in anchors for one in a])


def lwf(exam, *, alpha, temperature):
    net, T = exam.network(), temperature
    for k in exam.rounds:
        before = copy.deepcopy(net) if k > 1 else None

        def loss(some, before=before):
            z, right = scores(net, some)
            new = -z.log_softmax(1)[range(len(right)), right].mean()
            if before is None:
                return new
            with torch.no_grad():
                p = (scores(before, some)[0] / T).softmax(1)
            return new + alpha * T**2 * (p * (p.log() - (z / T).log_softmax(1))).sum(1).mean()

        exam.descend(k, exam.talks(k), list(net.parameters()), loss)
        yield exam.after(net)


def olora(exam, *, lambda_1, lambda_2, orthogonality="absolute"):
    net, parts = exam.adapted()
    old = {name: [] for name in parts}  # (A, B) of each earlier round
    size = torch.abs if orthogonality == "absolute" else torch.square

    def added(name, x):
        pairs = [(parts[name]["A"], parts[name]["B"]), *old[name]]
        return 6 / 4 * sum(x @ A.T @ B.T for A, B in pairs)

    def loss(some):
        overlap = sum(size(A @ parts[name]["A"].T).sum() for name, pairs in old.items() for A, _ in pairs)
        lengths = sum(torch.sqrt((w**2).sum()) for w in weights if w.any())
        return surprise(net, some) + lambda_1 * overlap + lambda_2 * lengths

    with_adapters(net, added, parts)
    weights = [weight for part in parts.values() for weight in part.values()]
    for k in exam.rounds:
        exam.descend(k, exam.talks(k), weights, loss)
        draws = exam.draws(k, "adapter")
        for name, part in parts.items():
            old[name].append((part["A"].detach().clone(), part["B"].detach().clone()))
            bound = 1 / math.sqrt(part["A"].shape[1])
            part["A"].data = (2 * torch.rand(part["A"].shape, generator=draws) - 1) * bound
            part["B"].data = torch.zeros_like(part["B"])
        joined = [torch.cat([pair[i] for pair in pairs], dim=i) for pairs in old.values() for i in (0, 1)]
        yield exam.after(net, weights, more=joined)


PENALTY = [
    Mutant("sign", "+ self.penalty()", "- self.penalty()"),
    Mutant("factor", "0.5 * self.strength", "self.strength"),
    Mutant("factor", "(theta - self.theta) ** 2", "(theta - self.theta).abs()", Anchor),
    Mutant("missing gradient", "anchor.distance(theta) for", "anchor.distance(theta.detach()) for"),
    Mutant("sum over tokens", 'reduction="sum"', 'reduction="mean"'),
]
ONLINE = [
    Mutant("factor", "past + new.fisher", "past + 0.5 * new.fisher", with_anchor),
    Mutant("order of rounds", "Anchor(new.theta, past", "Anchor([*anchors, new][0].theta, past", with_anchor),
    Mutant("factor", "gamma * anchors", "anchors", with_anchor),
]
TOLD = [
    Mutant("sign", "+ self.alpha", "- self.alpha"),
    Mutant("missing detach", "weight.detach().clone()", "weight.detach()"),
    Mutant("factor", "* temperature**2", "", distillation_loss),
    Mutant("order of rounds", "if self.learnt_before else None", "if data.round == 2 else None"),
]
APART = [
    Mutant("factor", "self.lambda_1 * self.overlap()", "self.overlap()"),
    Mutant("sign", "+ self.lambda_1", "- self.lambda_1"),
    Mutant("order of rounds", "names = [OLD, NEW] if", "names = [NEW, OLD] if"),
    Mutant("memory", "lora_B[NEW].weight.zero_()", "lora_B[NEW].weight"),
]


def anchors(learner):
    return [part for anchor in learner.anchors for part in (anchor.theta, anchor.fisher)]


def adapters(learner):
    return [part for layer in learner.layers() for part in (layer.lora_A[OLD].weight, layer.lora_B[OLD].weight)]


CHECKS = [
    language(EWC, ewc, PENALTY, more=anchors, strength=500.0),
    language(
        EWC,
        ewc,
        ONLINE,
        title="EWC, online",
        more=anchors,
        strength=500.0,
        gamma=0.6,
    ),
    language(LwF, lwf, TOLD, alpha=0.7, temperature=3.0),
    language(OLoRA, olora, APART, exam=Exam(tuning="lora"), more=adapters, lambda_1=0.2, lambda_2=0.05),
    language(
        OLoRA,
        olora,
        [*APART[:2], Mutant("mask", "sum(weight.norm() for", "sum(weight.square().sum() for")],
        exam=Exam(tuning="lora"),
        title="O-LoRA, squares",
        more=adapters,
        lambda_1=0.2,
        lambda_2=0.05,
        orthogonality="squared",
    ),
]


def test_penalties_go_where_their_papers_equations_go():
    for check in CHECKS:
        check.conforms()
