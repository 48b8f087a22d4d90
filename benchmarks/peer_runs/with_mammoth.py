# ruff: noqa: E402
"""The work by a checkout of Mammoth (commit 7ab9db9, that of DER), with its own training loop.

It runs in the folder of the checkout, which is the first of PYTHONPATH, too. Its SGD has no momentum, and it asks the
test sets of the rounds so far, not all.
"""

from __future__ import annotations

import importlib
from argparse import Namespace

import numpy as np
import torch

np.int, np.float, np.bool = int, float, bool  # which numpy had when it was written

import datasets
from datasets.utils.continual_dataset import ContinualDataset
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset
from utils import training
from work import ASKED_AT_ONCE, CAPACITY, CLASSES, LEARNING_RATE, ROUNDS, Clock, Work, child

MODELS = {"naive": "sgd", "replay": "er"}


class Triples(Dataset):
    """(x, y, x): what it trains on has the sample without augmentation as a third part."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.data, self.targets = x, y

    def __len__(self) -> int:
        return len(self.targets)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        return self.data[index], self.targets[index], self.data[index]


class Pairs(Triples):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, ...]:
        return self.data[index], self.targets[index]


def sequence(work: Work) -> type[ContinualDataset]:
    rounds, tests = work.rounds("train"), work.rounds("test")

    class Sequence(ContinualDataset):
        NAME, SETTING = "seq-peers", "class-il"
        N_CLASSES_PER_TASK, N_TASKS, TRANSFORM = CLASSES // ROUNDS, ROUNDS, None

        def get_data_loaders(self):
            k = self.i // self.N_CLASSES_PER_TASK
            self.i += self.N_CLASSES_PER_TASK
            self.train_loader = DataLoader(Triples(*rounds[k]), self.args.batch_size, shuffle=True)
            test = DataLoader(Pairs(*tests[k]), ASKED_AT_ONCE)
            self.test_loaders.append(test)
            return self.train_loader, test

    return Sequence


def run(work: Work, seed: int, clock: Clock) -> tuple[float, list[torch.Tensor]]:
    torch.manual_seed(seed)
    dataset = sequence(work)
    datasets.NAMES[dataset.NAME] = dataset
    name = MODELS[work.method]
    args = Namespace(
        model=name, dataset=dataset.NAME, lr=LEARNING_RATE, batch_size=work.batch, minibatch_size=work.batch,
        buffer_size=CAPACITY, n_epochs=work.epochs, csv_log=False, tensorboard=False, seed=seed,
    )  # fmt: skip
    kinds = vars(importlib.import_module(f"models.{name}")).values()
    kind = next(kind for kind in kinds if isinstance(kind, type) and getattr(kind, "NAME", "") == name)
    model = kind(Backbone(work.network()), cross_entropy, args, None)
    sets = dataset(args)
    with clock:  # and the test sets, which its loop asks itself
        training.train(model, sets, args)
    scores, _ = training.evaluate(model, sets)
    return sum(scores) / len(scores) / 100, list(model.net.parameters())


class Backbone(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x)


if __name__ == "__main__":
    child(run)
