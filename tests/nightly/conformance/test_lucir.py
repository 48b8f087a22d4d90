"""LUCIR as Hou et al. 2019 state it (eq. 4 to 8): cosines, a less forgetting constraint, a margin to hard new classes.

Left open by the paper or other than it, taken from the authors' code (hshustc/CVPR19_Incremental_Learning e5a90ae,
cifar100-class-incremental):
- the features have no ReLU behind them: modified_resnet_cifar.py:39-40;
- w is normalised in the forward pass, so that its length says how fast it turns; eta begins at 1 and is learned at the
  rate of all others: modified_linear.py:24, 33-36;
- lambda = 5 sqrt(C_old / C_new): class_incremental_cosine_cifar100.py:207-213 (eq. 7 of the paper has the inverse);
- vectors of new classes begin at the mean direction of their features in evaluation mode times the mean length of old
  ones: the same, 261-292; those of old classes have a rate and a decay of 0: the same, 326-331;
- the third term is a mean over exemplars of old classes and their K = 2 hardest new classes, with weight 1 and a margin
  of 0.5: utils_incremental/incremental_train_and_eval_MR_LF.py:103-122;
- the old network is in evaluation mode: the same, line 61.
"""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from ianvs.authoring import ExemplarLearner
from ianvs.authoring.networks import build_network
from ianvs.testalgorithms.lucir.basemodel import LUCIR
from ianvs.testalgorithms.lucir.features import UnitLength, without_last_relu
from tests.nightly.conformance.exemplars import Exemplars, features_of
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision


class Eta(nn.Module):
    """eta f / |f|"""

    def __init__(self, eta):
        super().__init__()
        self.eta = nn.Parameter(torch.tensor(eta))

    def forward(self, f):
        return self.eta * f / f.norm(dim=1, keepdim=True)


def naive(exam, *, capacity, less_forget, margin, rivals, scale):
    first = exam.network()
    eta, head = Eta(scale), nn.Linear(first[-1].in_features, exam.classes, bias=False)
    body = nn.Sequential(*[layer for layer in first[:-1] if not isinstance(layer, nn.ReLU)])
    net, exemplars, w = nn.Sequential(*body, eta, head), Exemplars(capacity), head.weight
    for k in exam.rounds:
        x, y = exam.data(k)
        all_x, all_y = exemplars.with_new(x, y)
        before = deepcopy(body).eval()
        old, new = exam.seen(k - 1), exam.group(k)
        if k > 1:
            length = w.data[old].norm(dim=1).mean()
            for c in new:
                mean = features_of(body, x[y == c]).mean(0)
                w.data[c] = length * mean / mean.norm()
        fixed, optimizer = w.data[old].clone(), exam.sgd(net.parameters())
        for _, some in exam.batches(k, len(all_y)):
            f = body(all_x[some])
            cosines = torch.stack([torch.stack([(one / one.norm()) @ (v / v.norm()) for v in w]) for one in f])
            loss = cross_entropy(eta.eta * cosines[:, : 2 * k], all_y[some])
            if k > 1:
                g = before(all_x[some]).detach()
                moved = [1 - (a / a.norm()) @ (b / b.norm()) for a, b in zip(f, g, strict=True)]
                loss = loss + less_forget * (len(old) / len(new)) ** 0.5 * sum(moved) / len(moved)
                hinges = [
                    (margin - row[label] + rival).clamp_min(0)
                    for row, label in zip(cosines, all_y[some].tolist(), strict=True)
                    if label in old
                    for rival in row[new].sort(descending=True).values[:rivals]
                ]
                loss = loss + (sum(hinges) / len(hinges) if hinges else 0.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            w.data[old] = fixed
        exemplars.choose(lambda some: features_of(body, some), x, y)
        tested = deepcopy(net)
        tested[-1].weight.data = normalize(w.data)
        yield exam.after(tested, k, exemplars.columns, [w.norm(dim=1)])


SLIPS = [
    Mutant("sign", "weight * moved.mean() + self", "weight * moved.mean() - self"),
    Mutant(
        "factor",
        "len(self.known_classes) / max(1, len(self.new_classes))",
        "len(self.new_classes) / max(1, len(self.known_classes))",
    ),
    Mutant("factor", "batch.outputs / self.network[-2].scale", "batch.outputs"),
    Mutant("missing detach", "cosines = batch.outputs", "cosines = batch.outputs.detach()"),
    Mutant("length", "linear(self.f, normalize(self.network[-1].weight))", "self.network[-1](self.f)"),
    Mutant("length", "w[self.known_classes].norm(dim=1).mean()", "1"),
    Mutant("length of before", "if self.lengths is not None:", "if False:"),
    Mutant("mask", "cosines[old][:, self.new_index]", "cosines[old][:, self.known_classes]"),
    Mutant("mask", "torch.isin(batch.y, self.old_index)", "torch.isin(batch.y, self.old_index, invert=True)"),
    Mutant(
        "memory before or after the step",
        ".data[self.old_index] = self.fixed",
        ".data[self.old_index] += 0 * self.fixed",
    ),
    Mutant("a last ReLU", "return nn.Sequential(*before)\n", "return body\n", UnitLength),
    Mutant("mode of the teacher", ".eval().requires_grad_(False)", ".requires_grad_(False)", ExemplarLearner),
]
CHECKS = [
    vision(
        LUCIR,
        naive,
        SLIPS,
        more=lambda learner: [learner.lengths],
        capacity=19,
        less_forget=5.0,
        margin=0.5,
        rivals=2,
        scale=1.0,
    ),
    vision(
        LUCIR,
        naive,
        [*SLIPS, Mutant("factor", "min(self.rivals, len(self.new_classes))", "2")],
        title="LUCIR with one rival",
        more=lambda learner: [learner.lengths],
        capacity=19,
        less_forget=2.0,
        margin=0.3,
        rivals=1,
        scale=3.0,
    ),
]


def test_lucir_turns_its_vectors_as_the_authors_code_does():
    for check in CHECKS:
        check.conforms()


@pytest.mark.parametrize("network", ["mlp", "resnet", "resnet18", "resnet50"])
def test_features_have_no_relu_behind_them(network):
    x = torch.randn(3, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    body = build_network(network, (3, 32, 32), 4, widths=(4, 8))[:-1].eval()
    with torch.no_grad():
        clipped, free = body(x), without_last_relu(body)(x)
    assert clipped.shape == free.shape
    assert float(free.min()) < 0 <= float(clipped.min())
    assert bool((clipped.mean(0) >= free.mean(0) - 1e-5).all())
    if network == "mlp":
        torch.testing.assert_close(free.relu(), clipped)
