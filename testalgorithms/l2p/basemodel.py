"""Learning to prompt."""

from dataclasses import replace

import torch
from torch import nn
from torch.nn.functional import normalize

from ianvs.authoring import FrozenBody, TorchLearner, own_classes_mask, token_network


class Prompted(nn.Module):
    """The mean over what a frozen transformer says at the places of the prompts that are nearest to the picture."""

    def __init__(self, body, width, pool, length, chosen):
        super().__init__()
        self.frozen, self.chosen = FrozenBody(body), chosen
        self.prompts = nn.Parameter(torch.empty(pool, length, width).uniform_(-0.1, 0.1))
        self.keys = nn.Parameter(torch.empty(pool, width).uniform_(-1, 1))

    def forward(self, x):
        with torch.no_grad():
            query = normalize(self.frozen(x))
        near = (query @ normalize(self.keys).T).topk(self.chosen, dim=1)  # (B, N) of the pool
        self.distance = (1 - near.values).sum(1).mean()
        prompts = self.prompts[near.indices].flatten(1, 2)
        vit = self.frozen.body
        tokens = vit.tokens(x)
        encoded = vit.encode(torch.cat([tokens[:, :1], prompts, tokens[:, 1:]], 1))
        return encoded[:, 1 : 1 + prompts.shape[1]].mean(1)


class L2P(TorchLearner):
    """Learning to prompt (L2P; Wang et al. 2022, arXiv 2112.08654, eq. 3 to 5).

    min over prompts P, keys k and the head of L(g(f(P_s; x)), y) + pull sum_s d(q(x), k_s): a sample's query q(x), the
    frozen network's feature, picks the `chosen` keys with the least cosine distance d; their prompts are put before the
    patches. L looks at the round's own classes alone, as the authors' code does.

    pool, length, chosen: prompts, tokens in each, prompts for a sample (paper: 10, 5, 5). pull: lambda (paper: 0.5).
    """

    networks = ("vit",)
    memory = ()  # it keeps no samples

    def __init__(self, *, pool: int = 10, length: int = 5, chosen: int = 5, pull: float = 0.5, **training):
        super().__init__(**{"network": "vit", **training})
        self.pool, self.length, self.chosen, self.pull = pool, length, chosen, pull

    def build_network(self, input_shape, num_classes):
        body, head = token_network(super().build_network(input_shape, num_classes))
        return nn.Sequential(Prompted(body, head.in_features, self.pool, self.length, self.chosen), head)

    def before_round(self, data):
        self.own = own_classes_mask(data, self.network[-1].out_features)

    def loss(self, batch):
        loss = super().loss(replace(batch, logits=batch.logits + self.own))
        return loss + self.pull * self.network[0].distance if loss.requires_grad else loss
