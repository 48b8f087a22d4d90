"""Prompts that a transformer's input is given, each picture its own or all of a step the same."""

import torch
from torch import nn
from torch.nn.functional import normalize

from ianvs.authoring import FrozenBody


class Prompted(nn.Module):
    """The mean over what a frozen transformer says at the places of the prompts whose keys are nearest to the picture.

    Prompts stand between class token and patches, at the position of the class token.
    """

    def __init__(self, body, width, pool, length, chosen, choice, between):
        super().__init__()
        self.frozen, self.chosen, self.choice = FrozenBody(body), chosen, choice
        self.prompts = nn.Parameter(torch.empty(pool, length, width).uniform_(*between))
        self.keys = nn.Parameter(torch.empty(pool, width).uniform_(*between))

    def forward(self, x):
        with torch.no_grad():
            query = normalize(self.frozen(x))
        near = query @ normalize(self.keys).T  # (B, pool)
        which = near.topk(self.chosen, dim=1).indices
        if self.training and self.choice == "batch":
            every = which.flatten()  # a bincount would wait for the card
            votes = every.new_zeros(len(self.keys)).scatter_add_(0, every, torch.ones_like(every))
            which = votes.argsort(descending=True, stable=True)[: self.chosen].expand(len(x), -1)
        self.distance = (1 - near.gather(1, which)).sum(1).mean()
        vit = self.frozen.body
        prompts = self.prompts[which].flatten(1, 2) + vit.position[:, :1]
        tokens = vit.tokens(x)
        encoded = vit.encode(torch.cat([tokens[:, :1], prompts, tokens[:, 1:]], 1))
        return encoded[:, 1 : 1 + prompts.shape[1]].mean(1)
