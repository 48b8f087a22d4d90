"""Torch's random numbers by purpose: see ianvs.base.seeding."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

from ianvs.base.seeding import stream_seed


def seeded(seed: int, device: torch.device | str = "cpu") -> AbstractContextManager[None]:
    """Context manager: seed torch's default generators of the CPU and of `device`, and restore them afterwards.

    Other devices are left alone: torch.manual_seed() would reset the generators of all of them.
    """
    device = torch.device(device)
    return _seeded_card(seed, device) if device.type == "cuda" else _SeededProcessor(seed)


@contextmanager
def _seeded_card(seed: int, device: torch.device) -> Iterator[None]:
    with torch.random.fork_rng(devices=[device]):
        torch.default_generator.manual_seed(seed)
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
        yield


class _SeededProcessor:
    """As fork_rng() for the CPU alone, which takes too long for each chunk of a stream: it looks for accelerators."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __enter__(self) -> None:
        self._before = torch.default_generator.get_state()
        torch.default_generator.manual_seed(self._seed)

    def __exit__(self, *error: object) -> None:
        torch.default_generator.set_state(self._before)


def torch_generator(seed: int, round_: int, purpose: str) -> torch.Generator:
    """Return a CPU generator for one purpose, so that its draws are the same on every device."""
    return torch.Generator().manual_seed(stream_seed(seed, round_, purpose))
