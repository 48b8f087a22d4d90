"""APER as Zhou et al. 2023 state it (arXiv 2303.07338, eq. 5 to 8 and algorithm 1), and RanPAC's first round.

The network learns the first round under a cosine classifier, or adapters in it do; then it is fixed, and beside the
one it was pretrained as, it gives the features whose means are the classes.

Left open by the paper, taken from LAMDA-PILOT 2647455, which its authors keep:
- the cosine classifier has a factor that is learned and begins at 1, and is dropped: backbone/linears.py:38-68;
- SGD with momentum 0.9, rate 0.01, decay 5e-4, 20 epochs of batches of 48, the rate along half a cosine to 0:
  models/aper_adapter.py:109-115, exps/aper_aperpter.json (fine-tuning: 6 epochs, 128, 0.05: exps/aper_finetune.json).
  Theirs falls after each epoch, ours after each step;
- RanPAC (McDonnell et al. 2023, algorithm 1) trains its first round in the same way, and drops that head as well:
  models/ranpac.py:126-150 there, and RanPAC/RanPAC 012927f, RanPAC.py:236-248.
"""

import copy
import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.aper.basemodel import APER, Beside
from ianvs.testalgorithms.body_tuning import BodyTuner, CosineHead, FirstRoundTuner
from ianvs.testalgorithms.ranpac.basemodel import RanPAC
from tests.conformance.kit import Mutant
from tests.conformance.test_closed_form import SUMS, ranpac, write
from tests.conformance.vision import vision

DECAY = 5e-4


def cosines(f, w):
    """(N, C) between rows."""
    return (f / f.norm(dim=1, keepdim=True).clamp_min(1e-12)) @ (w / w.norm(dim=1, keepdim=True)).T


def learn(exam, k, body, width, group):
    """Round k under a cosine classifier of its own; `body` with its parameters is changed in place."""
    torch.manual_seed(stream_seed(exam.seed, k, "noise"))
    bound = 1 / math.sqrt(width)
    w, eta = nn.Parameter(torch.empty(exam.classes, width).uniform_(-bound, bound)), nn.Parameter(torch.ones(1))
    torch.manual_seed(stream_seed(exam.seed, k, "noise"))  # again: what dropout draws
    x, y = exam.data(k)
    steps = list(exam.batches(k, len(y)))
    optimizer = torch.optim.SGD(
        [*(p for p in body.parameters() if p.requires_grad), w, eta],
        exam.learning_rate,
        exam.momentum,
        weight_decay=DECAY,
    )
    body.train()
    for i, (_, some) in enumerate(steps):
        optimizer.param_groups[0]["lr"] = exam.learning_rate * (1 + math.cos(math.pi * i / len(steps))) / 2
        loss = cross_entropy(eta * cosines(body(x[some]), w)[:, group], y[some] - group[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    body.eval()


def aper(exam, tuning):
    net = exam.network()
    plain, tuned, width = net[:-1].eval(), copy.deepcopy(net[:-1]), net[-1].in_features
    head, mean, n = nn.Linear(2 * width, exam.classes), {}, {}
    for k in exam.rounds:
        x, y = exam.data(k)
        if k == 1:
            learn(exam, k, tuned, width, exam.group(k))
        f = torch.cat([plain(x), tuned(x)], 1).detach().double()
        for one, c in zip(f, y.tolist(), strict=True):
            n[c] = n.get(c, 0) + 1
            mean[c] = mean.get(c, 0) + (one - mean.get(c, 0)) / n[c]
        head.weight.data.zero_()
        head.bias.data.fill_(-1e9)
        write(head, {c: m / m.norm() for c, m in mean.items()}, dict.fromkeys(mean, 0.0))
        f = torch.cat([plain(exam.test), tuned(exam.test)], 1).detach().double()
        answers = cosines(f, torch.stack([mean[c] for c in exam.seen(k)])).argmax(1).numpy()
        yield exam.after(nn.Sequential(plain, tuned, head), k, answers=answers)


def ranpac_that_learns_first(exam, width):
    def first(body, features):
        learn(exam, 1, body, features, exam.group(1))

    return ranpac(exam, width, first=first)


FIRST = [
    Mutant("order of rounds", "and not self.tuned and", "and", FirstRoundTuner),
    Mutant("mask", "logits=batch.logits + self.own", "logits=batch.logits * 2", BodyTuner),
    Mutant("factor", '"decay": "cosine"', '"decay": "none"', FirstRoundTuner),
    Mutant("factor", '"weight_decay": 5e-4', '"weight_decay": 0.0', FirstRoundTuner),
    Mutant("length", "self.eta * linear(normalize(f)", "self.eta * linear(f", CosineHead),
    Mutant("factor", "return self.eta * linear", "return linear", CosineHead),
]
BESIDE = Mutant("order of tokens", "[self.plain(x), self.tuned(x)]", "[self.tuned(x), self.plain(x)]", Beside)
CHECKS = [
    vision(
        APER,
        aper,
        [*SUMS, *FIRST, BESIDE],
        title="APER, fine-tuned",
        tuning="finetune",
        network="mlp",
        naive_options={"tuning": "finetune"},
    ),
    vision(
        RanPAC,
        ranpac_that_learns_first,
        [*SUMS, *FIRST],
        title="RanPAC that learns the first round",
        naive_options={"width": 20},
        network="mlp",
        width=20,
        tuning="finetune",
    ),
]


def test_aper_learns_its_first_round_and_takes_means_of_both_networks():
    for check in CHECKS:
        check.conforms()
