"""Federated learning: clients learn shares of each round's data, and a server combines their weights.

McMahan et al. 2017 (AISTATS, arXiv 1602.05629), algorithm 1 with all clients in every round of communication.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field, model_validator

from ianvs.base.types import Measure
from ianvs.exam.data.options import Options
from ianvs.exam.paradigms.link import Link, size_of
from ianvs.exam.paradigms.paradigm import Module, Paradigm, Session
from ianvs.plugins.contract import Learner

_MEGA = 1e6


class FederatedClient(Learner, Protocol):
    """A learner whose weights can be read and replaced. The server has one too, which is not trained itself."""

    def get_weights(self) -> Any:
        """Return the weights to send to the server: an array, a tensor, or lists and mappings of them.

        None: nothing yet.
        """

    def set_weights(self, weights: Any) -> None:
        """Continue from `weights`, in the form of `get_weights`; also before any training."""


class Aggregation(Protocol):
    """How the server combines weights. One object of the class serves the case, and may keep state."""

    def aggregate(self, weights: Sequence[Any], samples: Sequence[int], **context: Any) -> Any:
        """Return the weights from which all clients continue.

        Args:
            weights: Those of each client.
            samples: How many samples each client has just learned.
            **context: As for `train`.
        """


class FederatedOptions(Options):
    """Options of federated learning in an algorithm's yaml.

    Attributes:
        clients: Number of clients.
        communication_rounds: Rounds of communication in each round of the exam.
        partition: How the samples of a round are distributed: "iid": the same mix of classes for all; "non-iid": shares
            of each class are drawn from Dir(`concentration`).
        concentration: See `partition`.
        link: The link between each client and the server. All links work at the same time.
    """

    clients: int = Field(4, ge=1)
    communication_rounds: int = Field(2, ge=1)
    partition: Literal["iid", "non-iid"] = "iid"
    concentration: float = Field(0.5, gt=0)
    link: Link | None = None

    @model_validator(mode="after")
    def _of_the_partition(self) -> FederatedOptions:
        if "concentration" in self.model_fields_set and self.partition == "iid":
            raise ValueError("`concentration` belongs to `partition: non-iid`. Take one of them out.")
        return self


class FederatedLearning(Paradigm):
    """Clients train on shares of a round and a server averages, several times in each round.

    The server's model predicts.
    """

    name: ClassVar[str] = "federatedlearning"
    options: ClassVar[type[Options]] = FederatedOptions
    modules: ClassVar[Mapping[str, Any]] = {"basemodel": FederatedClient, "aggregation": Aggregation | None}
    measures: ClassVar[Mapping[str, Measure]] = {
        "uploaded_mb": Measure("Weights that clients sent to the server, in MB (10^6 bytes)."),
        "downloaded_mb": Measure("Weights that the server sent to clients, in MB (10^6 bytes)."),
        "client_upload_mb": Measure(
            "The most that a client sent in a round of communication, in MB (10^6 bytes).", reduce="max"
        ),
        "client_download_mb": Measure(
            "The most that a client got in a round of communication, in MB (10^6 bytes).", reduce="max"
        ),
        "communication_seconds": Measure(
            "Time on the simulated link: in each round of communication that of the slowest client."
        ),
    }

    def train(self, step: int, session: Session) -> None:
        """Exchange weights between server and clients, `communication_rounds` times."""
        for _ in range(session.options.communication_rounds):
            self._exchange(step, session)

    def _exchange(self, step: int, session: Session) -> None:
        options, server = session.options, session.module("basemodel")
        weights = session.call(server, "get_weights")
        down = size_of(weights)
        sent: list[Any] = []
        samples: list[int] = []
        slowest = 0.0
        for k in range(options.clients):
            client = session.module("basemodel", f"client {k}")
            learned = self._train_client(step, session, client, k, weights)
            if not learned:
                continue  # it has no samples
            sent.append(session.call(client, "get_weights"))
            samples.append(learned)
            up = size_of(sent[-1])
            session.measure("uploaded_mb", up / _MEGA)
            session.measure("downloaded_mb", down / _MEGA)
            session.measure("client_upload_mb", up / _MEGA)
            session.measure("client_download_mb", down / _MEGA)
            if options.link is not None:
                slowest = max(slowest, options.link.milliseconds(up, down) / 1000)
        if options.link is not None:
            session.measure("communication_seconds", slowest)
        if sent and session.has("aggregation"):
            together = session.call(session.module("aggregation"), "aggregate", sent, samples)
            session.call(server, "set_weights", together)
        elif sent:
            session.call(server, "set_weights", weighted_mean(sent, samples))

    def _train_client(self, step: int, session: Session, client: Module, k: int, weights: object) -> int:
        """Train client `k` from the server's weights and return its number of samples."""
        options = session.options
        skew = options.concentration if options.partition == "non-iid" else None
        samples = 0
        for data in session.feed(step, share=(k, options.clients), skew=skew):
            if not samples and weights is not None:
                session.call(client, "set_weights", weights)
            session.call(client, "train", data)
            samples += len(data)
        return samples


class FederatedClassIncrementalLearning(FederatedLearning):
    """Federated learning over a class-incremental exam, under Ianvs's name."""

    name: ClassVar[str] = "federatedclassincrementallearning"


def weighted_mean(weights: Sequence[Any], samples: Sequence[int]) -> object:
    """Return sum_k samples[k] weights[k] / sum_k samples[k] (FedAvg; McMahan et al. 2017, algorithm 1).

    Args:
        weights: Arrays, tensors or numbers, or lists and mappings of them, all of the same form, which is the form of
            the result. Integer counters stay integers.
        samples: Number of samples of each.
    """
    first = weights[0]
    if isinstance(first, Mapping):
        return {name: weighted_mean([client_weights[name] for client_weights in weights], samples) for name in first}
    if isinstance(first, list | tuple):
        return [weighted_mean(parts, samples) for parts in zip(*weights, strict=True)]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(first, torch.Tensor):
        total = sum(
            count * client_weights.double() for client_weights, count in zip(weights, samples, strict=True)
        ) / sum(samples)
        return (total if first.is_floating_point() else total.round()).to(first.dtype)
    mean = np.average(
        np.stack([np.asarray(client_weights, np.float64) for client_weights in weights]), axis=0, weights=samples
    )
    kind = np.asarray(first).dtype
    return (mean if kind.kind == "f" else np.rint(mean)).astype(kind)
