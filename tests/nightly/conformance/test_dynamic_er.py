"""Dynamically expandable representation as Yan et al. 2021 state it (arXiv 2103.16788, sections 3.2 to 3.4).

Phi_t = [Phi_{t-1}, F_t], Phi_{t-1} fixed, statistics of its normalisation too; F_t begins as F_{t-1}. L = L_H + L_Ha,
the auxiliary head H_a on F_t alone over the new classes and one for all older ones, weight 1 from the second round on
(Rhyssiyan/DER-ClassIL.pytorch dd4af61, inclearn/models/incmodel.py:93-101, 130-133, 193-194, 254-262,
convnet/network.py:113-137; PyCIL 87cc411, models/der.py:52-55, 183-192). Then the head is drawn anew and trained on
equally many samples of each class, with softmax(z / delta), delta 5, the rate a tenth from half of the epochs on, the
whole network in evaluation mode (incmodel.py:277-294, convnet/utils.py:9-76, tools/data_utils.py:4-21).

Where paper and code differ: the paper masks channels and prunes; the authors' code without masks is what they publish,
and PyCIL's; so is ours. The paper lets H keep its old columns while F_t is learned, the authors' published setting
draws all of it (`reuse_oldfc: False`), PyCIL keeps it (utils/inc_net.py:361-367), we keep it. PyCIL aligns weights
instead of the fine-tuning (models/der.py:119-125): `balance="align"`. The authors' head has no bias, PyCIL's
and ours have one.
"""

from copy import deepcopy

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import FrozenBody
from ianvs.base.seeding import stream_seed
from ianvs.testalgorithms.dynamic_er.basemodel import DynamicER
from ianvs.testalgorithms.side_by_side import GrowingLearner
from tests.nightly.conformance.exemplars import Exemplars, features_of
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import vision


class SideBySide(nn.Module):
    def __init__(self, bodies, head):
        super().__init__()
        self.bodies, self.head = nn.ModuleList(bodies), head

    def features(self, x):
        return torch.cat([body(x) for body in self.bodies], 1)

    def forward(self, x):
        return self.head(self.features(x))

    def train(self, mode=True):
        super().train(mode)
        for body in self.bodies[:-1]:
            body.eval()


def drawn(exam, k, purpose, inputs, outputs):
    torch.manual_seed(stream_seed(exam.seed, k, purpose))
    return nn.Linear(inputs, outputs)


def naive(exam, *, capacity, balance="finetune", head_epochs=30, temperature=5.0, auxiliary=1.0):
    first = exam.network()
    net, exemplars = SideBySide([first[:-1]], first[-1]), Exemplars(capacity)
    width = first[-1].in_features
    for k in exam.rounds:
        x, y = exam.data(k)
        all_x, all_y = exemplars.with_new(x, y)
        old, new, extra = exam.seen(k - 1), exam.group(k), None
        if k > 1:
            head = drawn(exam, k, "head", k * width, exam.classes)
            with torch.no_grad():
                for c in old:
                    head.weight[c, : (k - 1) * width] = net.head.weight[c]
                    head.bias[c] = net.head.bias[c]
            net = SideBySide([*net.bodies, deepcopy(net.bodies[-1])], head)
            net.train()
            extra = drawn(exam, k, "auxiliary head", width, 3)
        learned = [*net.bodies[-1].parameters(), *net.head.parameters()]
        optimizer = exam.sgd(learned if extra is None else [*learned, *extra.parameters()])
        for _, some in exam.batches(k, len(all_y)):
            f = net.features(all_x[some])
            loss = cross_entropy(net.head(f)[:, : 2 * k], all_y[some])
            if extra is not None:
                target = torch.tensor([1 + new.index(c) if c in new else 0 for c in all_y[some].tolist()])
                loss = loss + auxiliary * cross_entropy(extra(f[:, -width:]), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if k > 1 and balance == "align":
            w = net.head.weight.data
            w[new] = w[new] * (w[old].norm(dim=1).mean() / w[new].norm(dim=1).mean())
        if k > 1 and balance == "finetune":
            draws, counts = exam.draws(k, "balanced"), [int((all_y == c).sum()) for c in exam.seen(k)]
            chosen = []
            for c in exam.seen(k):
                of_class = [i for i, label in enumerate(all_y.tolist()) if label == c]
                chosen += [of_class[i] for i in torch.randperm(len(of_class), generator=draws)[: min(counts)].tolist()]
            net.head = drawn(exam, k, "balanced head", k * width, exam.classes)
            net.eval()
            f = net.features(all_x[chosen]).detach()
            optimizer = exam.sgd(net.head.parameters())
            for epoch, some in exam.batches(k, len(chosen), head_epochs):
                optimizer.param_groups[0]["lr"] = exam.learning_rate * (0.1 if epoch >= head_epochs // 2 else 1)
                loss = cross_entropy(net.head(f[some])[:, : 2 * k] / temperature, all_y[chosen][some])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            net.train()
        exemplars.choose(lambda some, net=net: features_of(Features(net), some), x, y)
        yield exam.after(net, k, exemplars.columns)


class Features(nn.Module):
    """The network without its head, with its modes."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net.features(x)


SLIPS = [
    Mutant("factor", "loss + self.auxiliary *", "loss - self.auxiliary *"),
    Mutant("features of the auxiliary head", "self.f[:, -self.second", "self.f[:, : self.second"),
    Mutant(
        "labels for old classes", "torch.arange(1, len(self.new_classes) + 1", "torch.arange(0, len(self.new_classes)"
    ),
    Mutant("what is trained", "return [] if self.second_head is None else", "return [] if True else", GrowingLearner),
    Mutant("what is trained", "FrozenBody(last)", "last", GrowingLearner),
    Mutant("mode of fixed bodies", "super().train(False)", "super().train(mode)", FrozenBody),
    Mutant("what a new body begins with", "copy.deepcopy(last))", "copy.deepcopy(bodies.parts[0]))", GrowingLearner),
    Mutant("what the head keeps", "head.weight[self.known_classes, ", "head.weight[self.new_classes, ", GrowingLearner),
]
FINETUNED = [
    Mutant("order of rounds", "head.load_state_dict(drawn.state_dict())", "drawn.state_dict()"),
    Mutant("factor", " / self.temperature, y)", ", y)"),
    Mutant("mode", "self.network[:-1].eval()", "self.network[:-1]"),
    Mutant("balance", "some_of_each(shown.y, None,", "some_of_each(shown.y, 99,"),
    Mutant("rate", "milestones=(self.head_epochs // 2,)", "milestones=()"),
]
ALIGNED = [Mutant("order of rounds", "weight[self.new_classes] *=", "weight[self.known_classes] *=")]
CHECKS = [
    vision(DynamicER, naive, [*SLIPS, *FINETUNED], capacity=19, head_epochs=4, temperature=3.0),
    vision(DynamicER, naive, [*SLIPS, *ALIGNED], title="DER of PyCIL", capacity=19, balance="align", auxiliary=0.7),
]


def test_dynamic_er_grows_and_balances_as_its_paper_says():
    for check in CHECKS:
        check.conforms()
