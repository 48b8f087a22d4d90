"""Imports PyTorch, makes an optimiser, and does nothing else: what every tool's process pays before it begins."""

import torch
from work import Clock, Work, child


def run(work: Work, seed: int, clock: Clock) -> tuple[float, list[torch.Tensor]]:
    return 0.0, []


if __name__ == "__main__":
    child(run)
