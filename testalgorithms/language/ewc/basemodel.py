"""Elastic weight consolidation."""

from math import inf

import torch
from torch.nn.functional import cross_entropy

from ianvs.authoring import Anchor, flat_parameters, with_anchor
from ianvs.authoring.projection import flat_gradient
from ianvs.testalgorithms.language import LanguageLearner
from ianvs.testalgorithms.language.numbers import at_least, within


class EWC(LanguageLearner):
    """Elastic weight consolidation (Kirkpatrick et al. 2017, eq. 3).

    L(theta) = L_new(theta) + strength / 2 * sum_k sum_i F_k,i (theta_i - theta*_k,i)^2, k over earlier rounds; F_k is
    the mean over conversations of the squared gradient of -log p(replies | what the user said) after round k.

    gamma: None keeps one anchor per round. A number from 0 to 1 keeps a single one at the latest weights, with
    F <- gamma F + F_new (online EWC; Schwarz et al. 2018, section 4).
    fisher_samples: conversations of a round that F_k is a mean over, drawn at random; None for all.
    """

    def __init__(self, *, strength=100.0, gamma=None, fisher_samples: int | None = None, **tuning):
        super().__init__(**tuning)
        within(0, inf, strength=strength)
        if gamma is not None:
            within(0, 1, gamma=gamma)
        if fisher_samples is not None:
            at_least(1, fisher_samples=fisher_samples)
        self.strength, self.gamma, self.fisher_samples, self.anchors = strength, gamma, fisher_samples, []

    def before_round(self, data):
        self.anchors = [anchor.to(self.device) for anchor in self.anchors]

    def loss(self, batch):
        return super().loss(batch) + self.penalty()

    def penalty(self):
        theta = flat_parameters(self.network)
        return 0.5 * self.strength * sum((anchor.distance(theta) for anchor in self.anchors), theta.new_zeros(()))

    def fisher(self, conversations):
        """(P,) in the order of `flat_parameters`. A conversation's log-likelihood is the sum over its learnt tokens."""
        self.network.eval()
        total = torch.zeros_like(flat_parameters(self.network)).detach()
        for conversation in conversations:
            batch = self.batch([conversation])
            loss = cross_entropy(self.logits(batch), batch.targets, reduction="sum")
            total += flat_gradient(loss, self.weights.values()).square()
        return total / len(conversations)

    def after_round(self, data):
        drawn = torch.randperm(len(data), generator=data.generator("fisher"))[: self.fisher_samples]
        fisher = self.fisher([data.encoded[i] for i in sorted(drawn.tolist())])
        self.anchors = with_anchor(self.anchors, Anchor.from_network(self.network, fisher), self.gamma)

    def state(self):
        return {"anchors": [anchor.state() for anchor in self.anchors]}

    def restore(self, state):
        self.anchors = [Anchor(**anchor) for anchor in state["anchors"]]
