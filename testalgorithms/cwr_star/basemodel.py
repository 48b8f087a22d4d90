"""Copy weights with re-init."""

from dataclasses import replace

import torch
from torch import nn

from ianvs.authoring import TorchLearner, body_and_head


class CWRStar(TorchLearner):
    """CWR* (Lomonaco et al. 2020, arXiv 1907.03799, algorithm 1): CWR+, for classes that may come back.

    A round with n_c samples of class c trains tw on its own classes alone, from tw_c = cw_c (0 if c is new). Then
    cw_c <- (cw_c * w + tw_c - avg(tw)) / (w + 1), w = sqrt(past_c / n_c), past_c <- past_c + n_c, and cw is the head.
    avg(tw) is one number, over all weights of the round's classes. The head has no bias.

    warm_rounds: rounds in which the body learns, before it is frozen with its normalisation (paper: 1).
    """

    memory = ()  # it keeps no samples

    def __init__(self, *, warm_rounds: int = 1, **training):
        super().__init__(**training)
        self.warm_rounds, self.rounds = warm_rounds, 0
        self.cw, self.past = None, None  # (classes, features), (classes,) samples

    def build_network(self, input_shape, num_classes):
        body, head = body_and_head(super().build_network(input_shape, num_classes))
        return nn.Sequential(*body, nn.Linear(head.in_features, num_classes, bias=False))

    def before_round(self, data):
        body, head = body_and_head(self.network)
        if self.cw is None:
            self.cw, self.past = torch.zeros(head.weight.shape), torch.zeros(head.out_features)
        self.counts = torch.bincount(data.labelled().y.cpu(), minlength=len(self.past))
        self.round_classes = (self.counts > 0).nonzero()[:, 0]
        self.others = torch.where(self.counts > 0, 0.0, -torch.inf).to(data.device)
        head.weight.data.copy_(self.cw * (self.counts > 0)[:, None])
        if self.rounds >= self.warm_rounds:
            body.eval().requires_grad_(False)

    def loss(self, batch):
        return super().loss(replace(batch, logits=batch.outputs + self.others))

    def after_round(self, data):
        head, n = self.network[-1], self.counts[self.round_classes]
        tw, w = head.weight.detach().cpu()[self.round_classes], (self.past[self.round_classes] / n).sqrt()[:, None]
        self.cw[self.round_classes] = (self.cw[self.round_classes] * w + tw - tw.mean()) / (w + 1)
        self.past += self.counts
        self.rounds += 1
        with torch.no_grad():
            head.weight.copy_(self.cw)

    def state(self):
        return {"rounds": self.rounds, "cw": self.cw, "past": self.past}

    def restore(self, state):
        self.rounds, self.cw, self.past = state["rounds"], state["cw"], state["past"]
