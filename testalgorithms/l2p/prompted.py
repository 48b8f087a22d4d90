"""Prompts that a transformer's input is given, each image its own or all of a step the same."""

import torch
from torch import nn
from torch.nn.functional import normalize

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.prompts import Prompted


class PromptPool(Prompted):
    """The mean over what a frozen transformer says at the places of the prompts whose keys are nearest to the image.

    Prompts stand before the patches, behind class token and registers, at the position of the class token.
    """

    def __init__(self, body, features, pool, length, chosen, choice, between):
        super().__init__(body)
        if features != body.width:
            raise PluginError(
                f"L2P's head takes tokens, of {body.width} numbers, not {features}: set `pooling: cls`.",
                code="refused-arguments",
            )
        self.chosen, self.choice = chosen, choice
        self.prompts = nn.Parameter(torch.empty(pool, length, body.width).uniform_(*between))
        self.keys = nn.Parameter(torch.empty(pool, features).uniform_(*between))

    def forward(self, x):
        near = normalize(self.query(x)) @ normalize(self.keys).T  # (N, pool)
        which = near.topk(self.chosen, dim=1).indices
        if self.training and self.choice == "batch":
            every = which.flatten()  # a bincount would wait for the GPU
            votes = every.new_zeros(len(self.keys)).scatter_add_(0, every, torch.ones_like(every))
            which = votes.argsort(descending=True, stable=True)[: self.chosen].expand(len(x), -1)
        self.cost = (1 - near.gather(1, which)).sum(1).mean()
        body = self.frozen.body
        prompts, tokens = self.prompts[which].flatten(1, 2) + body.class_position(), body.tokens(x)
        encoded = body.encode(torch.cat([tokens[:, : body.special], prompts, tokens[:, body.special :]], 1))
        return encoded[:, body.special :][:, : prompts.shape[1]].mean(1)
