"""EWC as Kirkpatrick et al. 2017 state it (eq. 3), and online EWC of Schwarz et al. 2018 (section 4, eq. 9).

L = L_new + sum over old rounds of lambda / 2 * F (theta - theta*)^2: one well for each round, or online a single one at
the weights of last with F <- gamma F + F_new. F is the diagonal of the Fisher information, whose expectation is over
the network's own answers ("exact").

How it is computed is told in neither paper; van de Ven 2025 (arXiv 2502.11756) compares the ways. "empirical", our
default, is that of GMvandeVen/continual-learning e6d795a, models/cl/continual_learner.py:199-290, with fisher_labels
"true"; its default "all" is our "exact". "weighted" is Mammoth 7ab9db9, models/ewc_on.py:56-66: each sample weighs
p(y | x), and the sum is divided by the number of batches times their size, ours by the number of samples; its penalty
(:42) has no 1/2. The network is in evaluation mode there (continual_learner.py:214-215) and here, so that batch
normalisation does not mix samples; Mammoth leaves its own in training mode.
"""

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import fisher
from ianvs.testalgorithms.ewc.basemodel import EWC
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision


def squared_gradient(net, x, y, mask):
    """Of the mean of -log p(y | x), as one long vector."""
    parts = torch.autograd.grad(cross_entropy(net(x) + mask, y), list(net.parameters()))
    return torch.cat([part.flatten() for part in parts]) ** 2


def information(net, x, y, mask, draws, kind, samples, batch):
    if samples is not None:
        some = torch.randperm(len(y), generator=draws)[:samples]
        x, y = x[some], y[some]
    shares = (net(x) + mask).softmax(1).detach()
    if kind == "batch":
        parts = zip(x.split(batch), y.split(batch), strict=True)
        return sum(len(b) * squared_gradient(net, a, b, mask) for a, b in parts) / len(y)
    if kind == "sampled":
        y = torch.multinomial(shares, 1, generator=draws)[:, 0]
    total = 0.0
    for i in range(len(y)):
        answers = shares[i].nonzero()[:, 0].tolist() if kind == "exact" else [int(y[i])]
        for c in answers:
            weight = shares[i, c] if kind in ("exact", "weighted") else 1.0
            total = total + weight * squared_gradient(net, x[i : i + 1], torch.tensor([c]), mask)
    return total / len(y)


def naive(exam, *, strength, gamma=None, fisher="empirical", fisher_samples=None, fisher_batch=32):
    net, wells = exam.network(), []
    for k in exam.rounds:
        x, y = exam.data(k)
        optimizer = exam.sgd(net.parameters())
        for _, some in exam.batches(k, len(y)):
            loss = cross_entropy(net(x[some]) + exam.mask(k), y[some])
            theta = torch.cat([p.flatten() for p in net.parameters()])
            for star, f in wells:
                loss = loss + strength / 2 * (f * (theta - star) ** 2).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        star = torch.cat([p.detach().flatten() for p in net.parameters()])
        net.eval()
        f = information(net, x, y, exam.mask(k), exam.draws(k, "fisher"), fisher, fisher_samples, fisher_batch)
        net.train()
        if gamma is None:
            wells.append((star, f))
        else:
            wells = [(star, gamma * (wells[0][1] if wells else 0.0) + f)]
        yield exam.after(net, k, more=[each for well in wells for each in well])


def kept(learner):
    return [each for anchor in learner.anchors for each in (anchor.theta, anchor.fisher)]


SLIPS = [
    Mutant("sign", "loss + 0.5 *", "loss - 0.5 *"),
    Mutant("factor", "0.5 * self.strength", "self.strength"),
    Mutant("mask", "data.mask, kind", "None, kind"),
    Mutant("training mode", "network.eval()", "network.train()", fisher.fisher_diagonal),
    Mutant("square", "(theta - self.theta) ** 2", "(theta - self.theta).abs()", fisher.Anchor),
]
ANCHORS = Mutant("order of rounds", "return [*anchors, new]", "return [*anchors[:1], new]", fisher.with_anchor)
ONLINE = [
    *SLIPS,
    Mutant("factor", "past + new.fisher", "past + (1 - gamma) * new.fisher", fisher.with_anchor),
    Mutant("order of rounds", "Anchor(new.theta, past", "Anchor((anchors or [new])[0].theta, past", fisher.with_anchor),
]
SUM = Mutant("factor", "total / max(count, 1)", "total", fisher.fisher_diagonal)
KINDS = {
    "empirical": [SUM],
    "exact": [SUM, Mutant("factor", "shares[:, classes]", "shares[:, classes] * 0 + 1", fisher.fisher_diagonal)],
    "sampled": [Mutant("own labels", 'kind == "sampled":', 'kind == "none":', fisher.fisher_diagonal)],
    "batch": [Mutant("factor", "len(y) * find.of", "find.of", fisher.fisher_diagonal)],
    "weighted": [
        SUM,
        Mutant("factor", "shares.gather(1, labels)", "shares.gather(1, labels) ** 2", fisher.fisher_diagonal),
    ],
}
CHECKS = [
    *(
        vision(
            EWC,
            naive,
            [*SLIPS, ANCHORS, *slips],
            title=f"EWC, {kind} Fisher",
            more=kept,
            strength=20.0,
            fisher=kind,
            **({"fisher_batch": 10} if kind == "batch" else {"fisher_samples": 20} if kind == "sampled" else {}),
        )
        for kind, slips in KINDS.items()
    ),
    vision(EWC, naive, ONLINE, title="online EWC", more=kept, strength=20.0, gamma=0.7),
    vision(EWC, naive, ONLINE, title="online EWC, weighted", more=kept, strength=20.0, gamma=1.0, fisher="weighted"),
]


def test_ewc_stays_where_the_wells_of_its_paper_hold_it():
    for check in CHECKS:
        check.conforms()
