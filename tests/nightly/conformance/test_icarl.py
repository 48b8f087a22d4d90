"""iCaRL as Rebuffi et al. 2017 state it (algorithms 1 to 5).

The targets of old classes are what the network of before the round says, a sigmoid for each class. Samples and
exemplars are learned together, each as often. Features have length 1, means of exemplars too (section 2.1).

Where paper and code differ: the paper's loss is a sum over classes. The authors' code takes the mean over all outputs,
those of classes to come included (srebuffi/iCaRL 7a3d254, iCaRL-TheanoLasagne/main_cifar_100_theano.py:66-67), Mammoth
7ab9db9 the mean over classes so far (models/icarl.py:91-103), and so do we. Mammoth brings neither features nor means
to length 1 (models/icarl.py:150, 198-206): `normalise=False`. Its `wd_reg` is half of a `weight_decay` (line 106).
The authors' code averages the features of mirrored pictures into the means (line 270); the paper doesn't, nor do we.
"""

from copy import deepcopy

import torch

from ianvs.authoring import ExemplarLearner, HerdingMemory
from ianvs.testalgorithms.icarl.basemodel import ICaRL
from tests.nightly.conformance.exemplars import Exemplars, features_of
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision


def naive(exam, *, capacity, normalise=True, weight_decay=0.0):
    net, exemplars = exam.network(), Exemplars(capacity)

    def f(x):
        return features_of(net[:-1], x, normalise)

    for k in exam.rounds:
        x, y = exam.data(k)
        all_x, all_y = exemplars.with_new(x, y)
        before, optimizer = deepcopy(net).eval(), exam.sgd(net.parameters())
        for _, some in exam.batches(k, len(all_y)):
            loss, p = 0.0, net(all_x[some]).sigmoid()
            q = before(all_x[some]).sigmoid().detach()
            for i, label in enumerate(all_y[some].tolist()):
                for c in exam.seen(k):
                    target = q[i, c] if c in exam.seen(k - 1) else float(c == label)
                    bce = -(target * p[i, c].log() + (1 - target) * (1 - p[i, c]).log())
                    loss = loss + bce / (len(some) * 2 * k)
            loss = loss + weight_decay / 2 * sum((w**2).sum() for w in net.parameters())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        exemplars.choose(f, x, y)
        means = torch.stack([f(exemplars.of[c]).mean(0) for c in exam.seen(k)])
        means = means / means.norm(dim=1, keepdim=True) if normalise else means
        away = [[(one - mean).norm().item() for mean in means] for one in f(exam.test)]
        yield exam.after(net, k, exemplars.columns, answers=torch.tensor(away).argmin(1).numpy())


SLIPS = [
    Mutant("factor", "target[:, self.seen_index])\n", 'target[:, self.seen_index], reduction="sum") / len(batch.y)\n'),
    Mutant("mask", "batch.outputs[:, self.seen_index], target[:, self.seen_index]", "batch.outputs, target"),
    Mutant("labels for old classes", "if self.teacher is not None", "if self.teacher is None"),
    Mutant("mode of the teacher", ".eval().requires_grad_(False)", ".requires_grad_(False)", ExemplarLearner),
    Mutant(
        "memory before or after the step",
        "if isinstance(self.memory, PerRoundMemory) or not len(self.memory)",
        "if True",
        ExemplarLearner,
    ),
    Mutant(
        "order of rounds",
        "torch.cat([data.x, x]), y=torch.cat([data.y, y])",
        "torch.cat([x, data.x]), y=torch.cat([y, data.y])",
        ExemplarLearner,
    ),
    Mutant("sign", "-distances.square()", "distances.square()"),
    Mutant("sign", "(mean - (total + features) / k)", "(mean + (total + features) / k)", HerdingMemory),
    Mutant("factor", "(total + features) / k)", "(total + features))", HerdingMemory),
]
CHECKS = [
    vision(ICaRL, naive, [*SLIPS, Mutant("length", "normalize(f, dim=-1) if self.normalise else f", "f")], capacity=19),
    vision(
        ICaRL,
        naive,
        [*SLIPS, Mutant("length", "normalize(f, dim=-1) if self.normalise else f", "normalize(f, dim=-1)")],
        title="iCaRL of Mammoth",
        capacity=19,
        normalise=False,
        weight_decay=0.02,
    ),
]


def test_icarl_learns_chooses_and_answers_as_its_algorithms_say():
    for check in CHECKS:
        check.conforms()
