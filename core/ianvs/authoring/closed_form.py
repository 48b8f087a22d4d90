"""A base class for methods that compute a linear head in closed form, from sums over fixed features."""

from typing import Any

import torch
from torch import Tensor, nn

from ianvs.authoring.memory import State
from ianvs.authoring.networks import body_and_head
from ianvs.authoring.round_data import RoundData
from ianvs.authoring.torch_learner import TorchLearner

NEVER = -1e9  # bias of classes without samples


class ClosedFormLearner(TorchLearner):
    """Passes every sample once through a frozen network, and keeps sums of the features f (D,) in float64.

    A method defines `solve`. The order of samples has no effect. There are no epochs and no learning rate, and no
    sample is kept.

    Attributes:
        counts: (C,) n_c, the number of samples of each class.
        sums: (C, D) s_c, the sum of f over each class.
        moment: (D, D) G, the sum of f f' over all classes, if a method sets `second_moment`.
    """

    memory: tuple[()] = ()  # no samples are stored
    second_moment = False

    def __init__(self, *, network: str = "linear", **training: Any) -> None:
        super().__init__(network=network, **{"frozen": True, **training})
        self.counts, self.sums, self.moment = (torch.zeros(0, dtype=torch.float64) for _ in range(3))

    def solve(self) -> tuple[Tensor, Tensor]:
        """Return (weight (K, D), bias (K,)), float64, of the K classes seen so far, in their order.

        `taught` has the sums.
        """
        raise NotImplementedError

    @property
    def taught(self) -> tuple[Tensor, Tensor]:
        """N (K, 1) and s (K, D) of the classes with samples."""
        some = self.counts > 0
        return self.counts[some][:, None], self.sums[some]

    def look(self, features: Tensor, y: Tensor) -> None:
        """Process the features of a round. It is called after they were added to the sums.

        Args:
            features: (N, D) float32.
            y: (N,) labels.
        """

    def training_data(self, data: RoundData) -> RoundData:
        """Add the round's features to the sums; no data remain to train on."""
        labelled = data.nothing() if data.pretraining else data.labelled()  # without labels there is nothing to sum
        if len(labelled):
            self._add(self._features(labelled.x), labelled.y.to(data.device))
        return data.nothing()

    def after_round(self, data: RoundData) -> None:
        """Solve for the head."""
        some = self.counts > 0
        if bool(some.any()):
            _, head = body_and_head(self.network)
            weight, bias = self.solve()
            with torch.no_grad():
                head.weight.zero_()
                head.bias.fill_(NEVER)
                head.weight[some.to(head.weight.device)] = weight.to(head.weight)
                head.bias[some.to(head.weight.device)] = bias.to(head.bias)

    def _add(self, features: Tensor, y: Tensor) -> None:
        classes, width = body_and_head(self.network)[1].weight.shape
        if not len(self.counts):
            self.counts = torch.zeros(classes, dtype=torch.float64)
            self.sums = torch.zeros(classes, width, dtype=torch.float64)
            self.moment = torch.zeros(*[width if self.second_moment else 0] * 2, dtype=torch.float64)
        for part, labels in zip(torch.split(features, 1024), torch.split(y, 1024), strict=True):
            f = part.double()
            hot = torch.nn.functional.one_hot(labels, classes).double()
            self.counts += hot.sum(0).cpu()
            self.sums += (hot.T @ f).cpu()
            if self.second_moment:
                self.moment += (f.T @ f).cpu()
        self.look(features, y)

    def state(self) -> State:
        """Return the sums."""
        return {"counts": self.counts, "sums": self.sums, "moment": self.moment}

    def restore(self, state: State) -> None:
        """Restore what `state` returned."""
        self.counts, self.sums, self.moment = state["counts"], state["sums"], state["moment"]


class RandomProjection(nn.Module):
    """h = relu(f R): features (N, D) -> (N, M).

    Attributes:
        R: (D, M) numbers drawn from a standard normal distribution at construction.
    """

    R: Tensor

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.register_buffer("R", torch.randn(features, width))

    def forward(self, f: Tensor) -> Tensor:
        """Return (N, M) from (N, D)."""
        return (f @ self.R).relu()
