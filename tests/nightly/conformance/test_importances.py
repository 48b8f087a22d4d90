"""Methods that hold weights by an importance: SI, MAS and RWalk, as their papers state them.

All three: L = L_new + strength * sum_i importance_i (theta_i - theta*_i)^2, theta* after the round before.

SI (Zenke et al. 2017, eq. 3 to 5): Omega = sum over rounds of omega / (Delta^2 + xi), omega the path integral of
-dL_new/dtheta along the steps. That Omega, not each round's omega, is cut off at 0 is the authors' code (ganguli-lab/
pathint 86c5e07, pathint/protocols.py:37); the paper says nothing. Mammoth 7ab9db9, models/si.py:49-70, does otherwise:
omega is the learning rate times the squared gradient of the whole loss, each of its numbers within -1 and 1.

MAS (Aljundi et al. 2018, eq. 2 and 3): the mean over samples of |d |F(x)|^2 / dtheta|, summed over rounds, in
evaluation mode (rahafaljundi/MAS-Memory-Aware-Synapses c3e6a85, MAS_utils/MAS_based_Training.py:394). That code takes
the gradient of a batch in place of a sample's unless it is told otherwise; ours is the paper's mean. F are the outputs
of classes so far, as the head of a task is in that code.

RWalk (Chaudhry et al. 2018, section 4): F a running mean of squared gradients, s the mean of the scores before and of
this round, whose stretches count what they gained over 1/2 F Delta^2 + epsilon, F at their begin. A stretch that lost
counts 0 (facebookresearch/agem 4542149, model/model.py:1035-1037, which has no 1/2). Both are scaled to 0..1 by their
largest number, as in Avalanche eb075be, avalanche/training/plugins/rwalk.py:236-248; model/model.py:1063-1110 takes off
the smallest, too.
"""

from dataclasses import replace

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import fisher
from ianvs.testalgorithms.mas.basemodel import MAS
from ianvs.testalgorithms.rwalk.basemodel import RWalk
from ianvs.testalgorithms.si.basemodel import SI
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import EXAM, vision


def flat(tensors):
    return torch.cat([t.flatten() for t in tensors])


class Walk:
    """One round of steps down L_new + strength * sum importance (theta - star)^2; tells what each step was.

    Yields (theta before it, the gradient of L_new there, theta after it), as long vectors.
    """

    def __init__(self, exam, net, k, strength, importance, star):
        self.exam, self.net, self.k = exam, net, k
        self.strength, self.importance, self.star = strength, importance, star

    def __iter__(self):
        x, y = self.exam.data(self.k)
        weights = list(self.net.parameters())
        optimizer = self.exam.sgd(weights)
        for _, some in self.exam.batches(self.k, len(y)):
            new = cross_entropy(self.net(x[some]) + self.exam.mask(self.k), y[some])
            slope = flat(torch.autograd.grad(new, weights, retain_graph=True))
            penalty = 0.0
            if self.importance is not None:
                penalty = self.strength * (self.importance * (flat(weights) - self.star) ** 2).sum()
            before = flat(weights).detach()
            optimizer.zero_grad()
            (new + penalty).backward()
            optimizer.step()
            yield before, slope, flat(weights).detach()


def si(exam, *, strength, xi):
    net, big, star = exam.network(), None, None
    for k in exam.rounds:
        start = flat(net.parameters()).detach()
        small = torch.zeros_like(start)
        for before, slope, after in Walk(exam, net, k, strength, big, star):
            small = small - slope * (after - before)
        star = flat(net.parameters()).detach()
        big = ((0.0 if big is None else big) + small / ((star - start) ** 2 + xi)).relu()
        yield exam.after(net, k, more=[big, star])


def mas(exam, *, strength, samples=None):
    net, omega, star = exam.network(), None, None
    for k in exam.rounds:
        for _ in Walk(exam, net, k, strength, omega, star):
            pass
        star = flat(net.parameters()).detach()
        x, _ = exam.data(k)
        if samples is not None:
            x = x[torch.randperm(len(x), generator=exam.draws(k, "importance"))[:samples]]
        net.eval()
        slopes = []
        for one in x:
            told = net(one[None])[:, exam.mask(k) == 0]
            slopes.append(flat(torch.autograd.grad((told**2).sum(), list(net.parameters()))).abs())
        net.train()
        omega = (0.0 if omega is None else omega) + sum(slopes) / len(slopes)
        yield exam.after(net, k, more=[omega, star])


def rwalk(exam, *, strength, rate, interval, epsilon):
    net, importance, star = exam.network(), None, None
    running, score = 0.0, None
    for k in exam.rounds:
        steps, own = list(Walk(exam, net, k, strength, importance, star)), 0.0
        stretches = [steps[i : i + interval] for i in range(0, len(steps), interval)]
        for stretch in stretches:
            gain = 0.0
            for i, (before, slope, after) in enumerate(stretch):
                running = rate * slope**2 + (1 - rate) * running
                gain = gain - slope * (after - before)
                if i == 0:
                    metric, begin = running, before
            own = own + gain.relu() / (metric * (after - begin) ** 2 / 2 + epsilon)
        score = own if score is None else (score + own) / 2
        star = flat(net.parameters()).detach()
        importance = running / running.max() + score / score.max()
        yield exam.after(net, k, more=[running, score, star])


STEEP = replace(EXAM, learning_rate=0.3)  # so that some weights lose on their way
SI_SLIPS = [
    Mutant("first epoch only", "self.omega -= self.slope", "self.omega = -self.slope"),
    Mutant("sign", "self.slope + penalty", "self.slope - penalty"),
    Mutant("factor", "penalty = 2 *", "penalty = 1 *"),
    Mutant("order of rounds", "self.importance + gained", "gained"),
    Mutant("whole loss", "self.slope = flat_gradients(self.network.parameters())\n        if", "if"),
    Mutant("cut off", "gained).clamp_min(0)", "gained.clamp_min(0)).clamp_min(0)"),
]
MAS_SLIPS = [
    Mutant("sign", "loss + self.strength", "loss - self.strength"),
    Mutant("factor", "/ len(data)", "/ 2"),
    Mutant("mask", "* seen)", ")"),
    Mutant("order of rounds", "else self.anchor.fisher)", "else 0.0)"),
    Mutant("square", "self.fisher * (theta - self.theta) ** 2", "self.fisher * (theta - self.theta)", fisher.Anchor),
]
RWALK_SLIPS = [
    Mutant("sign", "self.slope + penalty", "self.slope - penalty"),
    Mutant("factor", "0.5 * self.metric", "self.metric"),
    Mutant("factor", "(1 - self.rate) * self.fisher", "self.fisher"),
    Mutant("first or last step of a stretch", "0.5 * self.metric", "0.5 * self.fisher"),
    Mutant("order of rounds", "(self.score + self.walked) / 2", "self.walked"),
    Mutant("scale", "v / v.max().clamp_min(1e-30)", "v"),
]
CHECKS = [
    vision(SI, si, SI_SLIPS, exam=STEEP, more=lambda its: [its.importance, its.star], strength=5.0, xi=0.1),
    vision(MAS, mas, MAS_SLIPS, more=lambda its: [its.anchor.fisher, its.anchor.theta], strength=0.05),
    vision(
        MAS,
        mas,
        MAS_SLIPS,
        title="MAS, some samples",
        more=lambda its: [its.anchor.fisher, its.anchor.theta],
        strength=0.05,
        samples=11,
    ),
    vision(
        RWalk,
        rwalk,
        RWALK_SLIPS,
        more=lambda its: [its.fisher, its.score, its.star],
        strength=0.5,
        rate=0.3,
        interval=3,
        epsilon=0.1,
    ),
]


def test_methods_with_importances_go_where_their_papers_hold_them():
    for check in CHECKS:
        check.conforms()
