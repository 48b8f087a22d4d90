"""Learning to prompt."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from ianvs.authoring import TorchLearner, own_classes_mask, token_network
from ianvs.base.errors import require_known
from ianvs.testalgorithms.l2p.prompted import Prompted

CHOICES = ("batch", "sample")


class L2P(TorchLearner):
    """Learning to prompt (L2P; Wang et al. 2022, arXiv 2112.08654, eq. 3 to 5).

    min over prompts P, keys k and the head of L(g(f(P_s; x)), y) + pull sum_s d(q(x), k_s): a sample's query q(x), the
    frozen network's feature, picks the `chosen` keys with the least cosine distance d; their prompts are put before the
    patches. L looks at the round's own classes alone, as the authors' code does.

    pool, length, chosen: prompts, tokens in each, prompts for a sample (paper: 10, 5, 5). pull: lambda (paper: 0.5).
    choice: in training, "batch", all samples of a step get the prompts that most of them pick, as in the authors' code,
    or "sample"; in testing each sample has its own. between: bounds of the first prompts and keys (the authors' begin
    within 0 and 0.01, their code's port as here).
    """

    networks = ("vit",)
    memory = ()  # it keeps no samples

    def __init__(
        self,
        *,
        pool: int = 10,
        length: int = 5,
        chosen: int = 5,
        pull: float = 0.5,
        choice: str = "batch",
        between: Sequence[float] = (-1.0, 1.0),
        **training,
    ):
        require_known("choice", choice, CHOICES)
        theirs = {"optimizer": "adam", "learning_rate": 0.004, "clip_norm": 1.0}
        super().__init__(**{"network": "vit", **theirs, **training})
        self.pool, self.length, self.chosen, self.pull = pool, length, chosen, pull
        self.choice, self.between = choice, between

    def build_network(self, input_shape, num_classes):
        body, head = token_network(super().build_network(input_shape, num_classes))
        sizes = self.pool, self.length, self.chosen
        return nn.Sequential(Prompted(body, head.in_features, *sizes, self.choice, self.between), head)

    def before_round(self, data):
        self.own = own_classes_mask(data, self.network[-1].out_features)

    def loss(self, batch):
        loss = super().loss(replace(batch, logits=batch.logits + self.own))
        return loss + self.pull * self.network[0].distance if loss.requires_grad else loss
