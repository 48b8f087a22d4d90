"""Torch's random numbers by purpose: see ianvs.seeding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ianvs.seeding import stream_seed

__all__ = ["seeded", "torch_generator"]


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Inside, torch's default generators of the CPU and of `device` start at `seed`; afterwards they are as before.

    Other devices are left alone: torch.manual_seed() would reset the generators of all of them.
    """
    device = torch.device(device)
    if device.type == "cuda":
        with torch.random.fork_rng(devices=[device]):
            torch.default_generator.manual_seed(seed)
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
            yield
        return
    before = torch.default_generator.get_state()  # fork_rng() looks for accelerators first
    try:
        torch.default_generator.manual_seed(seed)
        yield
    finally:
        torch.default_generator.set_state(before)


def torch_generator(seed: int, round_: int, purpose: str) -> torch.Generator:
    """A CPU generator for one stream, so that its draws are the same on every device."""
    return torch.Generator().manual_seed(stream_seed(seed, round_, purpose))
