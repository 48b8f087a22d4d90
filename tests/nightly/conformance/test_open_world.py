"""Learners that say what is unlike all that was taught, beside the scores' equations.

Maximum softmax (Hendrycks & Gimpel 2017, section 3): 1 - max_c p(c | x). Energy (Liu et al. 2020, eq. 4):
-T log sum_c exp(z_c / T). Class means: the distance of f / |f| to the nearest mean of a class (Rebuffi et al. 2017,
eq. 2; as a rule of rejection Bendale & Boult 2015).

No paper has them in rounds. Ours, stated again here: a tenth of a round is held out, the rest is trained with old
samples joined to each batch; a reservoir holds four fifths of the memory for replay, another one a fifth of held-out
samples; the threshold is the quantile of the scores of the latter.
"""

import torch
from torch.nn.functional import cross_entropy

from ianvs.testalgorithms.class_means.basemodel import ClassMeans
from ianvs.testalgorithms.energy.basemodel import Energy
from ianvs.testalgorithms.max_softmax.basemodel import MaxSoftmax
from ianvs.testalgorithms.open_world.unseen_learner import UnseenLearner
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.naive_memories import Reservoir
from tests.nightly.conformance.vision import EXAM, vision
from tests.unit.testalgorithms.exam_of_arrays import Data


def unit(net, x):
    f = net[:-1](x)
    return f / f.norm(dim=1, keepdim=True)


def max_softmax(net, x, mask, means):
    return 1 - (net(x) + mask).softmax(1).max(1).values


def energy(net, x, mask, means):
    return -2.0 * ((net(x) + mask) / 2.0).exp().sum(1).log()


def class_means(net, x, mask, means):
    return torch.stack([(unit(net, x) - mean).norm(dim=1) for mean in means.values()]).min(0).values


def statement(score):
    def naive(exam, *, capacity, seen_kept):
        net = exam.network()
        replayed, held = Reservoir(capacity - capacity // 5), Reservoir(capacity // 5)
        for k in exam.rounds:
            x, y = exam.data(k)
            order = torch.randperm(len(y), generator=exam.draws(k, "held out"))
            spared, kept = order[: round(0.1 * len(y))], order[round(0.1 * len(y)) :]
            optimizer, old = exam.sgd(net.parameters()), exam.draws(k, "replay")
            for _, some in exam.batches(k, len(kept)):
                some_x, some_y = x[kept][some], y[kept][some]
                if len(replayed):
                    old_x, old_y = replayed.drawn(len(some), old)
                    some_x, some_y = torch.cat([some_x, old_x]), torch.cat([some_y, old_y])
                loss = cross_entropy(net(some_x) + exam.mask(k), some_y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            net.eval()
            with torch.no_grad():
                at_hand = [(x[kept], y[kept]), *([replayed.columns] if len(replayed) else [])]
                all_x, all_y = (torch.cat(column) for column in zip(*at_hand, strict=True))
                means = {c: unit(net, all_x)[all_y == c].mean(0) for c in all_y.unique().tolist()}
                replayed.offer(exam.draws(k, "memory"), x[kept], y[kept])
                held.offer(exam.draws(k, "threshold"), x[spared], y[spared])
                threshold = torch.quantile(score(net, held.columns[0], exam.mask(k), means).double(), seen_kept)
                strange = score(net, exam.test, exam.mask(k), means).double() - threshold
            net.train()
            yield exam.after(net, k, [*replayed.columns, *held.columns], [strange])

    return naive


def strangeness(learner):
    seen = EXAM.seen(learner._round)
    return [learner.detect_unseen(Data(EXAM.test.numpy()), num_classes=EXAM.classes, classes_seen=seen).double()]


SLIPS = [
    Mutant("memory before or after the step", "if not len(self.replayed):", "if True:", UnseenLearner),
    Mutant("factor", "capacity - capacity // 5", "capacity", UnseenLearner),
    Mutant("mask", "self._strangeness(self.held.x, data.mask)", "self._strangeness(self.held.x, None)", UnseenLearner),
    Mutant("order of rounds", "rows = order[round(self.held_out * len(data)) :]", "rows = order", UnseenLearner),
]
OPTIONS = {"capacity": 30, "seen_kept": 0.9, "more": strangeness}
CHECKS = [
    vision(
        MaxSoftmax,
        statement(max_softmax),
        [*SLIPS, Mutant("sign", "1 - self", "1 + self")],
        **OPTIONS,
    ),
    vision(
        Energy,
        statement(energy),
        [*SLIPS, Mutant("factor", "-self.temperature * (", "-1 * (")],
        naive_options={"capacity": 30, "seen_kept": 0.9},
        temperature=2.0,
        **OPTIONS,
    ),
    vision(
        ClassMeans,
        statement(class_means),
        [
            *SLIPS[:2],
            SLIPS[3],
            Mutant("factor", "normalize(self.logits(x, network=body))", "normalize(2 - self.logits(x, network=body))"),
        ],
        **OPTIONS,
    ),
]


def test_detectors_of_the_unseen_score_and_keep_as_their_equations_say():
    for check in CHECKS:
        check.conforms()
