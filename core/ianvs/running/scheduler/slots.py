"""Places for cases to run in: so many at a time, and on a machine with accelerators so many per card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ianvs.running.scheduler.graphics_cards import Card
from ianvs.running.scheduler.sharing import Sharing

__all__ = ["Slot", "Slots"]


@dataclass(frozen=True)
class Slot:
    """One place. gpu: its card, None on the host alone. alone: nobody shares the card."""

    gpu: Card | None = None
    alone: bool = False

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process has to see before it touches CUDA."""
        return {"CUDA_VISIBLE_DEVICES": "" if self.gpu is None else str(self.gpu)}


class Slots:
    """At most `jobs` places; with cards, at most `per_gpu` of them on each, or as many as `sharing` finds room for."""

    def __init__(
        self, jobs: int, gpus: tuple[Card, ...] = (), per_gpu: int = 1, sharing: Sharing | None = None
    ) -> None:
        self.sharing = sharing if gpus else None
        self._per_gpu = jobs if self.sharing else per_gpu
        self._free = min(jobs, len(gpus) * self._per_gpu) if gpus else jobs
        self._used = dict.fromkeys(gpus, 0)

    def take(self, *, alone: bool = False) -> Slot | None:
        """A place on the emptiest card, None while there is none. alone: a whole card."""
        if self._free < 1:
            return None
        if not self._used:
            self._free -= 1
            return Slot()
        gpu = min(self._used, key=self._used.__getitem__)
        wanted = self._per_gpu if alone else 1
        if self._used[gpu] + wanted > self._per_gpu or (self.sharing and not self.sharing.room(gpu)):
            return None
        self._used[gpu] += wanted
        self._free -= 1
        return Slot(gpu, alone or self._per_gpu == 1)

    def give(self, slot: Slot) -> None:
        """Give a place back."""
        self._free += 1
        if slot.gpu is not None:
            self._used[slot.gpu] -= self._per_gpu if slot.alone else 1
