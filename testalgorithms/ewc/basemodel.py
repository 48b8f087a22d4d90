"""Elastic weight consolidation."""

from ianvs.authoring import FISHERS, Anchor, TorchLearner, fisher_diagonal, flat_parameters, with_anchor
from ianvs.base.errors import require_known


class EWC(TorchLearner):
    """Elastic weight consolidation (Kirkpatrick et al. 2017, eq. 3).

    L(theta) = L_new(theta) + strength / 2 * sum_k sum_i F_k,i (theta_i - theta*_k,i)^2, k over earlier rounds;
    F_k is the mean of squared per-sample gradients after round k.

    gamma: None keeps one anchor per round. A number from 0 to 1 keeps a single one at the latest weights, with
    F <- gamma F + F_new (online EWC; Schwarz et al. 2018, section 4).
    fisher: "empirical", by the samples' own labels; "exact", by the network's answers; "sampled", "batch" or
    "weighted" (`fisher_diagonal` says what these are). fisher_samples: of a round, drawn at random; None for all.
    fisher_batch: the batch of "batch".
    """

    memory = ()  # it keeps no samples

    def __init__(
        self,
        *,
        strength: float = 100.0,
        gamma: float | None = None,
        fisher: str = "empirical",
        fisher_samples: int | None = None,
        fisher_batch: int = 32,
        **training,
    ):
        super().__init__(**training)
        require_known("fisher", fisher, FISHERS)
        self.strength, self.gamma, self.anchors = strength, gamma, []
        self.fisher, self.fisher_samples, self.fisher_batch = fisher, fisher_samples, fisher_batch

    def before_round(self, data):
        self.anchors = [anchor.to(data.device) for anchor in self.anchors]

    def loss(self, batch):
        loss = super().loss(batch)
        if not self.anchors:
            return loss
        theta = flat_parameters(self.network)
        return loss + 0.5 * self.strength * sum(anchor.distance(theta) for anchor in self.anchors)

    def after_round(self, data):
        data = data.labelled()  # what has no label has no likelihood
        if not len(data):
            return
        draws = data.generator("fisher")
        data = data.some(self.fisher_samples, draws)
        batches = data.batches(self.fisher_batch if self.fisher == "batch" else 1024)
        fisher = fisher_diagonal(self.network, batches, data.mask, kind=self.fisher, generator=draws)
        self.anchors = with_anchor(self.anchors, Anchor.from_network(self.network, fisher), self.gamma)

    def state(self):
        return {"anchors": [anchor.state() for anchor in self.anchors]}

    def restore(self, state):
        self.anchors = [Anchor(**anchor) for anchor in state["anchors"]]
