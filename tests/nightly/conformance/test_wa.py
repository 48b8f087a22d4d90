"""Weight aligning as Zhao et al. 2020 state it (arXiv 1911.07053, eq. 2 to 7 and section 4.3).

L = lambda L_KD + (1 - lambda) L_CE, lambda = C_old / (C_old + C_new); L_KD is the cross-entropy between softmax(z / T)
of the old network and of this one over old classes, with T = 2 and no factor T^2: PyCIL 87cc411, models/wa.py:161-178
and 214-217; LibContinual a399ed4, core/model/wa.py:23-37, 172-178. The entropy of the old network that we take off has
no gradient. After each step weights of the head below 0 become 0; after a round w_new *= mean |w_old| / mean |w_new|.

Where paper and code differ: the paper clips the weights, both codes don't; we follow the paper (`positive`). The paper
has no bias in o = W' phi(x), both codes have one; we follow the paper. The old network is in evaluation mode
(both codes). Exemplars are those of iCaRL (PyCIL, models/base.py).
"""

from copy import deepcopy

from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import ExemplarLearner
from ianvs.testalgorithms.wa.basemodel import WA
from tests.nightly.conformance.exemplars import Exemplars, features_of
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision


def naive(exam, *, capacity, temperature, positive=True):
    net = exam.network()
    net[-1] = nn.Linear(net[-1].in_features, exam.classes, bias=False)
    exemplars, T = Exemplars(capacity), temperature
    for k in exam.rounds:
        x, y = exam.data(k)
        all_x, all_y = exemplars.with_new(x, y)
        before, optimizer = deepcopy(net).eval(), exam.sgd(net.parameters())
        old, new = exam.seen(k - 1), exam.group(k)
        for _, some in exam.batches(k, len(all_y)):
            z = net(all_x[some])
            loss = cross_entropy(z[:, : 2 * k], all_y[some])
            if k > 1:
                q = (before(all_x[some])[:, old] / T).softmax(1).detach()
                kd = -(q * (z[:, old] / T).log_softmax(1)).sum(1).mean()
                loss = len(old) / (2 * k) * kd + len(new) / (2 * k) * loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if positive:
                w = net[-1].weight.data
                w[w < 0] = 0
        if k > 1:
            w = net[-1].weight.data
            w[new] = w[new] * (w[old].norm(dim=1).mean() / w[new].norm(dim=1).mean())
        exemplars.choose(lambda some: features_of(net[:-1], some), x, y)
        yield exam.after(net, k, exemplars.columns)


SLIPS = [
    Mutant("factor", " / self.temperature**2", ""),
    Mutant("factor", "share = len(self.known_classes)", "share = len(self.new_classes)"),
    Mutant("sign", "share * listened", "-share * listened"),
    Mutant("mask", "batch.outputs[:, self.known_index]", "batch.outputs[:, self.known_index].detach()"),
    Mutant("order of rounds", "weight[self.new_classes] *=", "weight[self.known_classes] *="),
    Mutant(
        "factor",
        "length[self.known_classes].mean() / length[self.new_classes].mean()",
        "length[self.known_classes].max() / length[self.new_classes].max()",
    ),
    Mutant("mode of the teacher", ".eval().requires_grad_(False)", ".requires_grad_(False)", ExemplarLearner),
]
CLIP = Mutant("sign", "self.network[-1].weight.clamp_(min=0)", "self.network[-1].weight.clamp_(max=0)")
CHECKS = [
    vision(WA, naive, [*SLIPS, CLIP], capacity=19, temperature=2.0),
    vision(WA, naive, SLIPS, title="WA of PyCIL, without its bias", capacity=19, temperature=3.0, positive=False),
]


def test_wa_weighs_listens_and_aligns_as_its_paper_says():
    for check in CHECKS:
        check.conforms()
