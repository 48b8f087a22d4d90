"""NCM, SLDA and RanPAC sample by sample, on the features of a network that is not trained.

NCM (Mensink et al. 2013, eq. 1; SimpleCIL, Zhou et al. 2023, eq. 5): the class whose mean is nearest, or has the
largest cosine; LAMDA-PILOT 2647455, models/simplecil.py.

SLDA (Hayes & Kanan 2020, arXiv 1909.01520, eq. 1 to 4), as in tyler-hayes/Deep_SLDA bc15797, SLDA_Model.py:59-69 and
90-101: covariance first, then the mean; t counts samples of all classes. Theirs is a pseudo-inverse, ours an inverse;
their experiments fit the first classes at once (line 116), ours begins with nothing. `exact` is no rule of theirs.

RanPAC (McDonnell et al. 2023, arXiv 2307.02251, eq. 4 to 6 and algorithm 1), as in RanPAC/RanPAC 012927f, RanPAC.py:
119-125 and 138-150. Theirs holds out the last fifth of a shuffled round, ours every fifth sample; both are draws. Its
training in the first round is in test_aper.py.

Outputs of classes that were not taught have weights of 0 and a bias of -1e9 (ours).
"""

import torch

from ianvs.authoring import ClosedFormLearner
from ianvs.testalgorithms.ncm.basemodel import NCM
from ianvs.testalgorithms.ranpac.basemodel import RanPAC
from ianvs.testalgorithms.simplecil.basemodel import SimpleCIL
from ianvs.testalgorithms.slda.basemodel import SLDA
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision


def frozen(exam):
    net = exam.network().eval()
    net[-1].weight.data.zero_()
    net[-1].bias.data.fill_(-1e9)
    return net


def double(x):
    return x.detach().double()


def write(head, weights, biases):
    """Both by class."""
    for c, w in weights.items():
        head.weight.data[c] = w.float()
        head.bias.data[c] = float(biases[c])


def means(exam, distance="euclidean"):
    net, mean, n = frozen(exam), {}, {}
    for k in exam.rounds:
        x, y = exam.data(k)
        for f, c in zip(double(net[:-1](x)), y.tolist(), strict=True):
            n[c] = n.get(c, 0) + 1
            mean[c] = mean.get(c, 0) + (f - mean.get(c, 0)) / n[c]
        if distance == "cosine":
            write(net[-1], {c: m / m.norm() for c, m in mean.items()}, dict.fromkeys(mean, 0.0))
        else:
            write(net[-1], mean, {c: -(m @ m) / 2 for c, m in mean.items()})
        f = double(net[:-1](exam.test))
        if distance == "cosine":
            near = torch.stack([f @ mean[c] / f.norm(dim=1) / mean[c].norm() for c in exam.seen(k)], 1)
        else:
            near = torch.stack([-(f - mean[c]).norm(dim=1) for c in exam.seen(k)], 1)
        yield exam.after(net, k, answers=near.argmax(1).numpy())


def slda(exam, shrinkage, exact=False):
    net, mean, n, t, S = frozen(exam), {}, {}, 0, 0.0
    width = net[-1].in_features
    eye = torch.eye(width, dtype=torch.float64)
    all_f, all_y = [], []
    for k in exam.rounds:
        x, y = exam.data(k)
        net.eval()
        for f, c in zip(double(net[:-1](x)), y.tolist(), strict=True):
            d = f - mean.get(c, torch.zeros(width))
            S = (t * S + t * torch.outer(d, d) / (t + 1)) / (t + 1)
            n[c] = n.get(c, 0) + 1
            mean[c] = mean.get(c, 0) + (f - mean.get(c, 0)) / n[c]
            t += 1
            all_f.append(f)
            all_y.append(c)
        if exact:
            S = sum(torch.outer(f - mean[c], f - mean[c]) for f, c in zip(all_f, all_y, strict=True)) / t
        L = torch.linalg.inv((1 - shrinkage) * S + shrinkage * eye)
        write(net[-1], {c: L @ m for c, m in mean.items()}, {c: -(m @ L @ m) / 2 for c, m in mean.items()})
        yield exam.after(net, k)


def ranpac(exam, width, all_rounds=False, first=None):
    """first: (body, D) trains the body in the first round, if it is given."""
    net, errors = frozen(exam), {}
    body, features = net[:-1], net[-1].in_features
    R = torch.randn(features, width)
    head = torch.nn.Linear(width, exam.classes)
    G, Q = torch.zeros(width, width, dtype=torch.float64), torch.zeros(width, exam.classes, dtype=torch.float64)
    eye = torch.eye(width, dtype=torch.float64)

    def projected(x):
        return double((body(x) @ R).relu())

    for k in exam.rounds:
        x, y = exam.data(k)
        if k == 1 and first is not None:
            first(body, features)
        body.eval()
        h, target = projected(x), torch.nn.functional.one_hot(y, exam.classes).double()
        for one, t in zip(h, target, strict=True):
            G, Q = G + torch.outer(one, one), Q + torch.outer(one, t)
        held = torch.tensor([i % 5 == 4 for i in range(len(y))])
        errors = errors if all_rounds else {}
        for power in range(-8, 9):
            some = h[~held]
            W = torch.linalg.solve(some.T @ some + 10.0**power * eye, some.T @ target[~held])
            error = ((h[held] @ W - target[held]) ** 2).sum().item()
            errors[10.0**power] = errors.get(10.0**power, 0.0) + error
        W = torch.linalg.solve(G + min(errors, key=errors.get) * eye, Q).T
        head.weight.data.zero_()
        head.bias.data.fill_(-1e9)
        write(head, {c: W[c] for c in exam.seen(k)}, dict.fromkeys(exam.seen(k), 0.0))
        whole = torch.nn.Sequential(body, Projected(R), head)
        yield exam.after(whole, k)


class Projected(torch.nn.Module):
    """relu(f R)"""

    def __init__(self, R):
        super().__init__()
        self.register_buffer("R", R)

    def forward(self, f):
        return (f @ self.R).relu()


SUMS = [
    Mutant("factor", "self.counts += hot.sum(0).cpu()", "self.counts = hot.sum(0).cpu()", ClosedFormLearner),
    Mutant("order of rounds", "self.sums += (hot.T @ f).cpu()", "self.sums = (hot.T @ f).cpu()", ClosedFormLearner),
    Mutant("mask", "head.bias.fill_(NEVER)", "head.bias.zero_()", ClosedFormLearner),
]
LDA = [
    *SUMS,
    Mutant("sign", "return w, -(w * m)", "return w, (w * m)"),
    Mutant("factor", "(1 - self.shrinkage) * S", "S"),
]
RIDGE = [
    *SUMS,
    Mutant("factor", "self.moment += (f.T @ f).cpu()", "self.moment = (f.T @ f).cpu()", ClosedFormLearner),
    Mutant("sign", "argmin()", "argmax()"),
]
LATEST = [
    Mutant("order of rounds", "self.errors *= self.all_rounds", "self.errors *= 1"),
    Mutant("held out", "% 5 == 4", "% 5 != 4"),
]
CHECKS = [
    vision(
        NCM,
        means,
        [*SUMS, Mutant("factor", "sum(1) / 2", "sum(1)"), Mutant("sign", "return m, -m", "return m, m")],
        naive_options={},
        network="mlp",
    ),
    vision(
        NCM,
        means,
        [*SUMS, Mutant("length", "return normalize(m)", "return m")],
        title="NCM by cosine",
        naive_options={"distance": "cosine"},
        network="mlp",
        distance="cosine",
    ),
    vision(
        SimpleCIL,
        means,
        [*SUMS, Mutant("length", "return normalize(m)", "return m", NCM)],
        naive_options={"distance": "cosine"},
        network="mlp",
    ),
    vision(
        SLDA,
        slda,
        [
            *LDA,
            Mutant("factor", "(t / (t + 1))", "(t + 1)"),
            Mutant("memory before or after the step", "z.cumsum(0) - z)", "z.cumsum(0))"),
            Mutant("order of rounds", "self.counts.sum() - len(y) + torch", "torch"),
        ],
        naive_options={"shrinkage": 1e-2},
        network="mlp",
        shrinkage=1e-2,
    ),
    vision(
        SLDA,
        slda,
        [*LDA, Mutant("sign", "self.moment - m.T @ s", "self.moment + m.T @ s")],
        title="SLDA with the exact covariance",
        naive_options={"shrinkage": 1e-2, "exact": True},
        network="mlp",
        shrinkage=1e-2,
        exact=True,
    ),
    vision(RanPAC, ranpac, [*RIDGE, *LATEST], naive_options={"width": 20}, network="mlp", width=20),
    vision(
        RanPAC,
        ranpac,
        [*RIDGE, Mutant("order of rounds", "self.errors *= self.all_rounds", "self.errors *= 0")],
        title="RanPAC with the errors of all rounds",
        naive_options={"width": 20, "all_rounds": True},
        network="mlp",
        width=20,
        all_rounds=True,
    ),
]


def test_heads_in_closed_form_are_what_sample_by_sample_comes_out():
    for check in CHECKS:
        check.conforms()
