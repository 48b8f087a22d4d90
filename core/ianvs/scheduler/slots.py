"""Places for cases to run in: so many at a time, and on a machine with accelerators so many per card."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Slot", "Slots", "visible_gpus"]

_DRIVER = Path("/proc/driver/nvidia/gpus")


@dataclass(frozen=True)
class Slot:
    """One place. gpu: index of its card, None on the host alone. alone: nobody shares the card."""

    gpu: int | None = None
    alone: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process has to see before it touches CUDA."""
        return {"CUDA_VISIBLE_DEVICES": "" if self.gpu is None else str(self.gpu)}


class Slots:
    """At most `jobs` places; with cards, at most `per_gpu` of them on each."""

    def __init__(self, jobs: int, gpus: tuple[int, ...] = (), per_gpu: int = 1) -> None:
        self._free = min(jobs, len(gpus) * per_gpu) if gpus else jobs
        self._per_gpu = per_gpu
        self._used = dict.fromkeys(gpus, 0)

    def take(self, *, alone: bool = False) -> Slot | None:
        """A place on the emptiest card, None while there is none. alone: a whole card."""
        if self._free < 1:
            return None
        if not self._used:
            self._free -= 1
            return Slot()
        gpu = min(self._used, key=lambda card: (self._used[card], card))
        wanted = self._per_gpu if alone else 1
        if self._used[gpu] + wanted > self._per_gpu:
            return None
        self._used[gpu] += wanted
        self._free -= 1
        return Slot(gpu, alone or self._per_gpu == 1)

    def give(self, slot: Slot) -> None:
        """Give a place back."""
        self._free += 1
        if slot.gpu is not None:
            self._used[slot.gpu] -= self._per_gpu if slot.alone else 1


def visible_gpus(
    environment: Mapping[str, str] = os.environ, driver: Path = Path("/proc/driver/nvidia/gpus")
) -> tuple[int, ...]:
    """Indices of the NVIDIA cards of this machine that CUDA_VISIBLE_DEVICES leaves, found without starting CUDA."""
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        numbers = [part.strip() for part in chosen.split(",")]
        return tuple(int(number) for number in numbers if number.isdigit())
    try:
        return tuple(range(len(list(driver.iterdir()))))
    except OSError:
        return ()
