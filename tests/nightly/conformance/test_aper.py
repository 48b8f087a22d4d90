"""APER as Zhou et al. 2023 state it (arXiv 2303.07338), and RanPAC's first round.

The network learns the first round under a cosine classifier, or adapters in it do; then it is fixed, and beside the
one it was pretrained as, it gives the features whose means are the classes.

Left open by the paper, taken from LAMDA-PILOT 2647455, which its authors keep:
- the cosine classifier has a factor that is learned and begins at 1, and is dropped: backbone/linears.py:38-68;
- SGD with momentum 0.9, rate 0.01, decay 5e-4, 20 epochs of batches of 48, the rate along half a cosine to 0:
  models/aper_adapter.py:109-115, exps/aper_aperpter.json (fine-tuning: 6 epochs, 128, 0.05: exps/aper_finetune.json).
  Theirs falls after each epoch, ours after each step;
- adapters beside the MLP see what enters its norm; 64 units, a factor of 0.1, dropout 0.1 between, `down` as torch's
  linear layers begin, all else 0: backbone/vit_adapter.py:29-83, 155-171, utils/inc_net.py:67-79;
- RanPAC (McDonnell et al. 2023, algorithm 1) trains its first round in the same way, and drops that head as well:
  models/ranpac.py:126-150 there, and RanPAC/RanPAC 012927f, RanPAC.py:236-248.
"""

import copy
import math

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout

from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.aper.basemodel import APER, Beside
from ianvs.testalgorithms.body_tuning import Adapter, BodyTuner, CosineHead, FirstRoundTuner
from ianvs.testalgorithms.ranpac.basemodel import RanPAC
from tests.nightly.conformance.harness import After, Mutant
from tests.nightly.conformance.pictures import DEPTH, WIDTH, Pictures, body_weights, encode, pictures, tokens
from tests.nightly.conformance.test_closed_form import SUMS, ranpac, write
from tests.nightly.conformance.vision import vision

DECAY = 5e-4


def cosines(f, w):
    """(N, C) between rows."""
    return (f / f.norm(dim=1, keepdim=True).clamp_min(1e-12)) @ (w / w.norm(dim=1, keepdim=True)).T


def learn(exam, k, make, width, group):
    """A body, what `make` returns, that has learned round k under a cosine classifier of its own."""
    torch.manual_seed(stream_seed(exam.seed, k, "noise"))
    body = make()
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
    return body.eval()


def aper(exam, tuning):
    net = exam.network()
    plain, tuned, width = net[:-1].eval(), copy.deepcopy(net[:-1]), net[-1].in_features
    head, mean, n = nn.Linear(2 * width, exam.classes), {}, {}
    for k in exam.rounds:
        x, y = exam.data(k)
        if k == 1:
            learn(exam, k, lambda: tuned, width, exam.group(k))
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


class Naive(nn.Module):
    """The small transformer, with an adapter in each block if there are some."""

    def __init__(self, w, bottleneck=None):
        super().__init__()
        self.w = w
        n = 0 if bottleneck is None else DEPTH
        self.down = nn.ParameterList(torch.empty(bottleneck, WIDTH) for _ in range(n))
        self.up = nn.ParameterList(torch.zeros(WIDTH, bottleneck) for _ in range(n))
        self.b = nn.ParameterList(torch.zeros(bottleneck) for _ in range(n))
        self.c = nn.ParameterList(torch.zeros(WIDTH) for _ in range(n))
        for down in self.down:
            nn.Linear(WIDTH, bottleneck), nn.Linear(bottleneck, WIDTH)  # ours draws these first
            nn.init.uniform_(down, -1 / math.sqrt(WIDTH), 1 / math.sqrt(WIDTH))

    def forward(self, x):
        adapters = [self.adapter(i) for i in range(len(self.down))] or None
        return encode(self.w, tokens(self.w, x), adapters=adapters)[0][:, 0]

    def adapter(self, i):
        def change(h):
            between = (h @ self.down[i].T + self.b[i]).relu()
            return 0.1 * (dropout(between, 0.1, self.training) @ self.up[i].T + self.c[i])

        return change


def aper_with_adapters(exam, bottleneck):
    net = exam.network()
    w = body_weights(net)
    plain, tuned = Naive(w), Naive(w, bottleneck)
    sums = {}
    for k in exam.rounds:
        x, y = exam.data(k)
        if k == 1:
            learn(exam, k, lambda: tuned, WIDTH, exam.group(k))
        with torch.no_grad():
            for one, c in zip(torch.cat([plain(x), tuned(x)], 1), y.tolist(), strict=True):
                sums[c] = sums.get(c, 0) + one.double()
            means = torch.stack([sums[c] / sums[c].norm() for c in exam.seen(k)])
            f = torch.cat([plain(exam.test), tuned(exam.test)], 1).double()
        answers = cosines(f, means).argmax(1).numpy()
        yield After([p.detach().clone() for p in (*tuned.parameters(), means)], [], answers)


def learned(learner):
    adapters, head = learner.network[0].tuned.adapters, learner.network[1].weight
    parts = [[a.down.weight for a in adapters], [a.up.weight for a in adapters]]
    parts += [[a.down.bias for a in adapters], [a.up.bias for a in adapters]]
    return [*(one for part in parts for one in part), head[head.norm(dim=1) > 0]]


def ranpac_that_learns_first(exam, width):
    def first(body, features):
        learn(exam, 1, lambda: body, features, exam.group(1))

    return ranpac(exam, width, first=first)


FIRST = [
    Mutant("order of rounds", "and not self.tuned and", "and", FirstRoundTuner),
    Mutant("factor", "logits=batch.logits + self.class_mask", "logits=batch.logits * 2", BodyTuner),
    Mutant("factor", '"decay": "cosine"', '"decay": "none"', FirstRoundTuner),
    Mutant("factor", '"weight_decay": 5e-4', '"weight_decay": 0.0', FirstRoundTuner),
    Mutant("length", "self.eta * linear(normalize(f)", "self.eta * linear(f", CosineHead),
    Mutant("factor", "return self.eta * linear", "return linear", CosineHead),
]
BESIDE = Mutant("order of tokens", "[plain(x), self.tuned(x)]", "[self.tuned(x), plain(x)]", Beside)
ADAPTERS = [
    Mutant("factor", "scale=0.1", "scale=0.2", Adapter),
    Mutant("dropout", "0.1, self.training", "0.2, self.training", Adapter),
    Mutant("activation", "self.down(h).relu()", "self.down(h)", Adapter),
]
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
    pictures(
        APER,
        aper_with_adapters,
        [*SUMS[:2], *FIRST, *ADAPTERS],
        learned,
        exam=Pictures(learning_rate=1.0),
        bottleneck=5,
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
