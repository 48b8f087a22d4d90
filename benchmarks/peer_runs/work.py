"""The work that every tool does: for each seed five rounds of two new classes each, and all test sets after each."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

ROUNDS = 5
CLASSES = 10
MOMENTUM = 0.9
LEARNING_RATE = 0.01
CAPACITY = 200  # of a memory, samples
ALPHA, TEMPERATURE = 1.0, 2.0  # of LwF
STRENGTH = 1.0  # of EWC
FISHER_BATCH = 32
ASKED_AT_ONCE = 64  # samples, by tools that have to be told
CHANNELS = (32, 64)


@dataclass(frozen=True)
class Work:
    """folder: holds train.npz and test.npz, x (N, height, width, channels) uint8 and y (N,). epochs: in a round.

    seeds: 0 and so on; so many runs.
    """

    folder: str
    data: str
    method: str
    epochs: int
    seeds: int
    batch: int = 32

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    def arrays(self, part: str) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, channels, height, width) float32 from -1 to 1, and (N,) int64."""
        with np.load(Path(self.folder, f"{part}.npz")) as file:
            x, y = file["x"], file["y"]
        return torch.from_numpy(x).permute(0, 3, 1, 2).contiguous().float() / 127.5 - 1, torch.from_numpy(y).long()

    def rounds(self, part: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Samples of classes 0 and 1, of 2 and 3, and so on."""
        x, y = self.arrays(part)
        per_round = CLASSES // ROUNDS
        return [(x[y // per_round == k], y[y // per_round == k]) for k in range(ROUNDS)]

    def network(self) -> nn.Module:
        """Two linear layers for the digits, two convolutions and a linear layer for the pictures."""
        if self.data == "digits":
            return nn.Sequential(nn.Flatten(), nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, CLASSES))
        return convolutions(CLASSES)


def convolutions(num_classes: int) -> nn.Module:
    """For pictures of 32 x 32 pixels."""
    a, b = CHANNELS
    return nn.Sequential(
        *(nn.Conv2d(3, a, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(b * 8 * 8, num_classes)),
    )


def child(run: Callable[[Work, int, Clock], tuple[float, list[torch.Tensor]]]) -> None:
    """A run's process: reads its work, writes seconds of training, and accuracy and weights of the last seed."""
    told, out = (Path(name) for name in sys.argv[1:3])
    work = Work(**json.loads(told.read_text()))
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)  # the first one loads torch._dynamo: part of the start
    clock, accuracy, weights = Clock(), 0.0, []
    for seed in range(work.seeds):
        accuracy, weights = run(work, seed, clock)
    torch.save([weight.detach().clone() for weight in weights], out.with_suffix(".pt"))
    out.write_text(json.dumps({"accuracy": accuracy, "training": clock.seconds}))


class Clock:
    """Processor seconds within `with clock:`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *_: Any) -> None:
        self.seconds += time.process_time() - self._began
