"""What continual learning is held against: fine-tuning, joint and cumulative training, a linear head on fixed features.

Each round goes down the mean of -log softmax(z)_y over its samples, classes to come left out, with a new optimiser.
Joint training begins anew in each round, with the first weights, over the samples of all rounds in their order;
cumulative training goes on. A linear probe (Lin et al. 2021, the baseline of CLEAR) trains the head alone, on what the
body says in evaluation mode.
"""

from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.authoring import round_data, training_loop
from ianvs.testalgorithms.cumulative.basemodel import Cumulative
from ianvs.testalgorithms.finetune.basemodel import Finetune
from ianvs.testalgorithms.joint.basemodel import Joint
from ianvs.testalgorithms.linear_probe.basemodel import LinearProbe
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import EXAM, Exam, vision


@dataclass(frozen=True)
class Decaying(Exam):
    """Plain steps with a decay of weights, at a rate that falls tenfold after the first epoch."""

    def sgd(self, parameters):
        return torch.optim.SGD(parameters, self.learning_rate, momentum=self.momentum, weight_decay=0.01)


def naive(exam, *, rounds=lambda k: [k], anew=False, mask=True, rates=(1.0, 1.0)):
    """rounds: those that are learned in round k. rates: factors of the learning rate in the two epochs."""
    net = exam.network()
    for k in exam.rounds:
        if anew:
            net = exam.network()
        x, y = (torch.cat(column) for column in zip(*map(exam.data, rounds(k)), strict=True))
        optimizer = exam.sgd(net.parameters())
        for epoch, some in exam.batches(k, len(y)):
            optimizer.param_groups[0]["lr"] = exam.learning_rate * rates[epoch]
            loss = cross_entropy(net(x[some]) + (exam.mask(k) if mask else 0.0), y[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield exam.after(net, k)


def so_far(k):
    return range(1, k + 1)


def probe(exam):
    *body, head = exam.network()
    body = nn.Sequential(*body).eval()
    for k in exam.rounds:
        x, y = exam.data(k)
        with torch.no_grad():
            features = body(x)
        optimizer = exam.sgd(head.parameters())
        for _, some in exam.batches(k, len(y)):
            loss = cross_entropy(head(features[some]) + exam.mask(k), y[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        yield exam.after(nn.Sequential(head), k, answers=exam.answers(nn.Sequential(*body, head), k))
        body.eval()


OPEN = [
    Mutant(
        "first epoch only", "schedule.steps(len(data), data.passes)", "schedule.steps(len(data), 1)", training_loop.fit
    ),
    Mutant("missing zero_grad", "parameter.grad = None", "pass", training_loop.fit),
]
SLIPS = [
    *OPEN,
    Mutant("mask", "outputs if self.mask is None else outputs + self.mask", "outputs", round_data.RoundData),
]
TASKS = Mutant("mask", "outputs + self.task_masks[y]", "outputs", round_data.RoundData)
DECAY = Mutant("factor", 'group["lr"] = rate * factor', 'group["lr"] *= factor', training_loop.fit)
EARLIER = "torch.cat([x for x, _ in parts]), torch.cat([y for _, y in parts])"
JOINED = [
    *SLIPS,
    Mutant("order of rounds", "for part in self.rounds]", "for part in self.rounds[::-1]]", round_data.Joined),
    Mutant("one round", EARLIER, "parts[-1]", round_data.Joined),
]
CHECKS = [
    vision(Finetune, naive, SLIPS),
    vision(Finetune, naive, [*OPEN, TASKS], title="Finetune, tasks", exam=replace(EXAM, told=True)),
    vision(
        Finetune,
        naive,
        [*OPEN, DECAY],
        title="Finetune without a mask, with decays",
        exam=Decaying(momentum=0.0),
        naive_options={"mask": False, "rates": (1.0, 0.1)},
        mask_unseen=False,
        weight_decay=0.01,
        step_every=1,
    ),
    vision(
        Joint,
        naive,
        [*JOINED, Mutant("goes on", "self.reset()", "pass")],
        naive_options={"rounds": so_far, "anew": True},
    ),
    vision(Cumulative, naive, JOINED, naive_options={"rounds": so_far}),
    vision(
        LinearProbe,
        probe,
        [
            *SLIPS,
            Mutant("training mode", "body.eval()", "body.train()"),
            Mutant("another body", "self.prepare(part.to(data.device))", "part.tile(2)[:, :16]"),
        ],
        naive_options={},
        network="mlp",
    ),
]


def test_plain_training_goes_down_the_loss_of_what_it_is_given():
    for check in CHECKS:
        check.conforms()
