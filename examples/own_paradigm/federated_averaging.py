"""Federated averaging (McMahan et al. 2017): clients learn shares of a round, a server averages their weights."""

from typing import Protocol

from ianvs.exam.paradigms import Measure, Options, Paradigm
from ianvs.plugins.contract import Learner


class Client(Learner, Protocol):
    def get_weights(self): ...

    def set_weights(self, weights): ...


class Aggregation(Protocol):
    def aggregate(self, weights, samples): ...


class FederatedOptions(Options):
    clients: int = 3
    exchanges: int = 2


class FederatedAveraging(Paradigm):
    name = "FederatedAveraging"
    options = FederatedOptions
    modules = {"basemodel": Client, "aggregation": Aggregation}
    measures = {"uploaded_mb": Measure("Weights that clients sent to the server, in MB (10^6 bytes).")}

    def train(self, step, session):
        server, aggregation = session.module("basemodel"), session.module("aggregation")
        clients = session.options.clients
        for _ in range(session.options.exchanges):
            weights = session.call(server, "get_weights")
            sent, samples = [], []
            for k in range(clients):
                client = session.module("basemodel", f"client {k}")
                session.call(client, "set_weights", weights)
                for data in session.feed(step, share=(k, clients)):
                    session.call(client, "train", data)
                    samples.append(len(data))
                sent.append(session.call(client, "get_weights"))
                session.measure("uploaded_mb", sent[-1].nbytes / 1e6)
            session.call(server, "set_weights", session.call(aggregation, "aggregate", sent, samples))
