"""Prototypes of a network before and after the first round."""

import torch
from torch import nn

from ianvs.testalgorithms.body_tuning import FirstRoundTuner
from ianvs.testalgorithms.simplecil.basemodel import SimpleCIL


class Beside(nn.Module):
    """(N, ...) -> (N, 2D): what the pretrained body says, then what the tuned one does."""

    def __init__(self, plain, tuned):
        super().__init__()
        # A module that had two names in the network would be stored under the second.
        self.plain = None if plain is getattr(tuned, "frozen", None) else plain
        self.tuned = tuned

    def forward(self, x):
        plain = self.tuned.frozen if self.plain is None else self.plain
        return torch.cat([plain(x), self.tuned(x)], 1)


class APER(FirstRoundTuner, SimpleCIL):
    """Adapt and merge (APER; Zhou et al. 2023, arXiv 2303.07338), also known as ADAM.

    In the first round the body, or adapters in it, learn under a cosine head. From then on all is fixed, and SimpleCIL
    classifies by [f(x), f*(x)], the features of the network before and after that.

    tuning: "adapter" or "finetune".
    """

    def __init__(self, *, tuning: str = "adapter", **training):
        super().__init__(tuning=tuning, **{"network": "vit", **training})

    def joined(self, plain, head):
        return nn.Sequential(Beside(plain, self.tunable), nn.Linear(2 * head.in_features, head.out_features))
