"""The loop that anybody would write with PyTorch's DataLoader: each method in a few lines.

Orders and draws are those of ianvs, so that the weights have to be, too.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax
from torch.utils.data import ConcatDataset, DataLoader, Dataset, TensorDataset
from work import ALPHA, CAPACITY, FISHER_BATCH, LEARNING_RATE, MOMENTUM, STRENGTH, TEMPERATURE, Clock, Work, child

from ianvs.base.seeding import stream_seed


class Order(torch.utils.data.Sampler[int]):
    """A new permutation for each epoch."""

    def __init__(self, length: int, seed: int) -> None:
        self.length, self.generator = length, torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(self.length, generator=self.generator).tolist())

    def __len__(self) -> int:
        return self.length


def run(work: Work, seed: int, clock: Clock) -> tuple[float, list[Tensor]]:
    rounds = [TensorDataset(*part) for part in work.rounds("train")]
    tests = [TensorDataset(*part) for part in work.rounds("test")]
    torch.manual_seed(stream_seed(seed, 0, "init"))
    network = work.network()
    memory = Memory(seed)
    anchors: list[tuple[Tensor, Tensor]] = []
    scores = []
    for k, data in enumerate(rounds, 1):
        known = range(2 * (k - 1))
        with clock:
            samples: Dataset[tuple[Tensor, ...]] = ConcatDataset(rounds[:k]) if work.method == "cumulative" else data
            train(network, samples, work, seed, k, memory, anchors, list(known))
            if work.method == "ewc":
                anchors.append((flat(network), fisher(network, data)))
            if work.method == "replay":
                memory.take(data, k)
        scores = [accuracy(network, test) for test in tests]
    return sum(scores) / len(scores), list(network.parameters())


def train(
    network: nn.Module,
    data: Dataset[tuple[Tensor, ...]],
    work: Work,
    seed: int,
    k: int,
    memory: Memory,
    anchors: list[tuple[Tensor, Tensor]],
    known: list[int],
) -> None:
    teacher = copy.deepcopy(network).eval()
    network.train()
    optimizer = torch.optim.SGD(network.parameters(), LEARNING_RATE, momentum=MOMENTUM)
    order = Order(len(data), stream_seed(seed, k, "order"))  # type: ignore[arg-type]
    loader = DataLoader(data, work.batch, sampler=order)
    draws = torch.Generator().manual_seed(stream_seed(seed, k, "replay"))
    for _ in range(work.epochs):
        for x, y in loader:
            if work.method == "replay" and k > 1:
                old_x, old_y = memory.draw(len(y), draws)
                x, y = torch.cat([x, old_x]), torch.cat([y, old_y])
            outputs = network(x)
            loss = cross_entropy(outputs, y)
            if anchors:
                theta = torch.cat([weight.flatten() for weight in network.parameters()])
                penalty = sum(((theta - star) ** 2 * weight).sum() for star, weight in anchors)
                loss = loss + 0.5 * STRENGTH * penalty
            if work.method == "lwf" and known:
                with torch.no_grad():
                    before = softmax(teacher(x)[:, known] / TEMPERATURE, dim=1)
                now = log_softmax(outputs[:, known] / TEMPERATURE, dim=1)
                loss = loss + ALPHA * TEMPERATURE**2 * kl_div(now, before, reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


class Memory:
    """A reservoir: of all samples so far, those with the largest random keys."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.x, self.y, self.keys = torch.empty(0), torch.empty(0, dtype=torch.int64), torch.empty(0).double()

    def take(self, data: TensorDataset, k: int) -> None:
        x, y = data.tensors
        stream = torch.Generator().manual_seed(stream_seed(self.seed, k, "memory"))
        self.keys = torch.cat([self.keys, torch.rand(len(y), dtype=torch.float64, generator=stream)])
        self.x = x if k == 1 else torch.cat([self.x, x])
        self.y = torch.cat([self.y, y])
        kept = self.keys >= self.keys.sort(descending=True).values[:CAPACITY][-1]
        self.x, self.y, self.keys = self.x[kept], self.y[kept], self.keys[kept]

    def draw(self, count: int, draws: torch.Generator) -> tuple[Tensor, Tensor]:
        picked = torch.randperm(len(self.y), generator=draws)[:count]
        return self.x[picked], self.y[picked]


def flat(network: nn.Module) -> Tensor:
    return torch.cat([weight.detach().flatten() for weight in network.parameters()])


def fisher(network: nn.Module, data: TensorDataset) -> Tensor:
    """Squared mean gradients of batches, as the peers compute it."""
    network.eval()
    total = torch.zeros_like(flat(network))
    for x, y in DataLoader(data, FISHER_BATCH):
        network.zero_grad()
        cross_entropy(network(x), y).backward()
        gradient = torch.cat([weight.grad.flatten() for weight in network.parameters()])
        total += len(y) * gradient**2
    return total / len(data)


def accuracy(network: nn.Module, test: TensorDataset) -> float:
    network.eval()
    with torch.no_grad():
        right = [(network(x).argmax(1) == y).sum().item() for x, y in DataLoader(test, 256)]
    return sum(right) / len(test)


if __name__ == "__main__":
    child(run)
