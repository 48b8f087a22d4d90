"""CWR* as Lomonaco et al. 2020 state it (arXiv 1907.03799, algorithm 1).

Each round trains tw, a head for its own classes that starts at their cw (0 for new ones); the body learns in the first
round alone. Then cw_j <- (cw_j w_j + tw_j - avg(tw)) / (w_j + 1), w_j = sqrt(past_j / cur_j). Answers come from cw.

avg(tw) is one number, over all weights of the round's classes, in Avalanche eb075be,
avalanche/training/plugins/cwr_star.py:73-75; the outputs of other classes have no part in the loss, as in the paper,
where the head has none; Avalanche (:107-117) leaves them there with weights of 0. The body's normalisation is frozen
with it (:135-140). The head has no bias, which nothing would consolidate.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from ianvs.testalgorithms.cwr_star.basemodel import CWRStar
from tests.nightly.conformance.harness import Mutant
from tests.nightly.conformance.vision import Exam, vision


@dataclass(frozen=True)
class Returning(Exam):
    """Class 1 and class 0 come back."""

    def group(self, k):
        return [[0, 1], [1, 2], [0, 2, 3]][k - 1]

    def seen(self, k):
        return [[0, 1], [0, 1, 2], [0, 1, 2, 3]][k - 1]


def naive(exam, *, warm_rounds=1):
    *body, last = exam.network()
    body, width = nn.Sequential(*body), last.in_features
    cw, past = torch.zeros(exam.classes, width), torch.zeros(exam.classes)
    for k in exam.rounds:
        x, y = exam.data(k)
        own = exam.group(k)
        tw = nn.Parameter(cw[own].clone())
        learns = k <= warm_rounds
        body.train(learns)
        optimizer = exam.sgd([*body.parameters(), tw] if learns else [tw])
        for _, some in exam.batches(k, len(y)):
            features = body(x[some]) if learns else body(x[some]).detach()
            loss = cross_entropy(features @ tw.T, torch.tensor([own.index(c) for c in y[some].tolist()]))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        tw = tw.detach()
        for j, row in zip(own, tw, strict=True):
            cur = int((y == j).sum())
            w = (past[j] / cur).sqrt()
            cw[j] = (cw[j] * w + row - tw.mean()) / (w + 1)
            past[j] += cur
        head = nn.Linear(width, exam.classes, bias=False)
        head.weight.data.copy_(cw)
        yield exam.after(nn.Sequential(*body, head), k, more=[cw, past])


SLIPS = [
    Mutant("mask", "batch.outputs + self.others", "batch.outputs"),
    Mutant("factor", ".sqrt()[:, None]", "[:, None]"),
    Mutant("mean of each class", "tw.mean()", "tw.mean(1, keepdim=True)"),
    Mutant("starts at 0", "head.weight.data.copy_(self.cw *", "head.weight.data.copy_(0 * self.cw *"),
    Mutant("order of rounds", "self.past += self.counts", "self.past = self.counts.float()"),
    Mutant("body goes on", "self.rounds >= self.warm_rounds", "self.rounds > self.warm_rounds"),
    Mutant("normalisation goes on", "body.eval().requires_grad_(False)", "body.requires_grad_(False)"),
]


def consolidated(learner):
    return [learner.cw, learner.past]


CHECKS = [
    vision(CWRStar, naive, SLIPS, exam=Returning(), more=consolidated),
    vision(CWRStar, naive, SLIPS, title="CWR*, two rounds", exam=Returning(), more=consolidated, warm_rounds=2),
]


def test_cwr_star_goes_through_its_papers_algorithm():
    for check in CHECKS:
        check.conforms()
