"""The base class of servers in federated learning, and the usual one."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ianvs.kubeedge.provided.class_factory import ClassFactory, ClassType

__all__ = ["AggClient", "BaseAggregation", "FedAvg"]


Weights = Iterable[ArrayLike]


class AggClient:
    """The message of a client: its weights, a list of arrays, and the number of samples behind them."""

    num_samples: int
    weights: Weights


class BaseAggregation(ABC):
    def __init__(self) -> None:
        self.total_size = 0
        self.weights: Weights | None = None

    @abstractmethod
    def aggregate(self, clients: Sequence[AggClient]) -> object:
        """Return the weights for all clients from those of each client."""


@ClassFactory.register(ClassType.FL_AGG)
class FedAvg(BaseAggregation):
    """Federated averaging (McMahan et al. 2017, algorithm 1): the mean of the weights, by number of samples."""

    def aggregate(self, clients: Sequence[AggClient]) -> Weights | None:
        """Return nested lists, one for each layer; without clients, the weights of the last call."""
        if not len(clients):
            return self.weights
        self.total_size = sum(client.num_samples for client in clients)
        shares = [client.num_samples / self.total_size for client in clients]
        layers = zip(*(client.weights for client in clients), strict=True)
        self.weights = [
            np.sum([np.asarray(w) * share for w, share in zip(layer, shares, strict=True)], axis=0).tolist()
            for layer in layers
        ]
        return self.weights
