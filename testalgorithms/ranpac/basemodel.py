"""Random projections and a ridge classifier."""

import torch
from torch import nn
from torch.nn.functional import one_hot

from ianvs.authoring import RandomProjection, body_and_head
from ianvs.testalgorithms.body_tuning import FirstRoundTuner

RIDGES = 10.0 ** torch.arange(-8, 9, dtype=torch.float64)
MOST = 2500  # samples of a round that lambda is chosen by


class RanPAC(FirstRoundTuner):
    """RanPAC (McDonnell et al. 2023, arXiv 2307.02251, eq. 4 to 6 and algorithm 1).

    W = (G + lambda I)^-1 C on h = relu(f R), where G = sum h h' and C = sum h y', y one-hot. Of 10^-8, ..., 10^8 lambda
    is the one with the least squared error on a fifth of the latest round, after fitting the other four.

    width: M, random features (paper: 10000; G has M^2 numbers). all_rounds: the errors of all rounds are summed, which
    is steadier where a round is small. tuning: whether the body learns in the first round ("adapter" in the paper).
    """

    second_moment = True

    def __init__(self, *, width: int = 2000, all_rounds: bool = False, **training):
        super().__init__(**training)
        self.width, self.all_rounds = width, all_rounds
        self.errors = torch.zeros(len(RIDGES), dtype=torch.float64)

    def build_network(self, input_shape, num_classes):
        body, head = body_and_head(super().build_network(input_shape, num_classes))
        projection = RandomProjection(head.in_features, self.width)
        return nn.Sequential(nn.Sequential(*body, projection), nn.Linear(self.width, num_classes))

    def look(self, features, y):
        some = slice(None, None, -(-len(y) // MOST))  # spread over the round, which may be sorted by class
        h, target = features[some].double().cpu(), one_hot(y[some].cpu(), len(self.counts)).double()
        held = torch.arange(len(h)) % 5 == 4
        values, vectors = torch.linalg.eigh(h[~held] @ h[~held].T)  # in as many numbers as samples, not as M
        onto, seen = vectors.T @ target[~held], h[held] @ h[~held].T @ vectors
        self.errors *= self.all_rounds
        for i, ridge in enumerate(RIDGES):
            self.errors[i] += (seen @ (onto / (values.clamp_min(0) + ridge)[:, None]) - target[held]).square().sum()

    def solve(self):
        ridge = RIDGES[self.errors.argmin()]
        G = self.moment + ridge * torch.eye(self.width, dtype=torch.float64)
        return torch.linalg.solve(G, self.taught[1].T).T, torch.zeros(len(self.taught[0]))

    def state(self):
        return {**super().state(), "errors": self.errors}

    def restore(self, state):
        super().restore(state)
        self.errors = state["errors"]
