"""Places for cases to run in: so many at a time, and on a machine with accelerators so many per card.

How many cases share a card may be found out while they run (`cases_per_gpu: auto`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ianvs.running.scheduler.graphics_cards import Card

GROWTH = 1.05  # of what a card gets done, that one more case has to bring
ROOM = 0.9  # of a card's memory that cases may take
OWN_BYTES = 1 << 30  # of each case, which torch does not count: CUDA's context in its process and in that which answers
SLACK = 1.2  # later rounds may take more than the first


@dataclass
class _Sharer:
    """A case on a card. began: when its round did; still: whether as many have shared the card since. seconds: of its
    rounds, by how many shared it meanwhile."""

    began: float | None = None
    still: bool = False
    peak: int | None = None
    seconds: dict[int, float] = field(default_factory=dict)


class Sharing:
    """Says whether a card has room for one more case.

    A card begins with one case. One more comes when it fits beside the others, by the most memory that a first round
    took so far, and when the one before has paid: cases that each take t_n seconds for a round where n share a card
    get done n / t_n in a second, which has to have grown by GROWTH since one less shared it. A case that found the card
    full says that there were too many. What is learnt on one card holds for all of them: they run the same job.

    Results never depend on it: a case computes the same numbers, sooner or later.
    """

    def __init__(self, cards: Sequence[Card], memory: Mapping[Card, int]) -> None:
        """memory: bytes of each card. One of which they are not known takes one case."""
        self._memory = memory
        self._on: dict[Card, dict[str, _Sharer]] = {card: {} for card in cards}
        self._ratios: dict[int, list[float]] = defaultdict(list)  # by n: t_(n-1) / t_n of cases that have known both
        self._peak: int | None = None
        self._most: int | None = None

    @property
    def most(self) -> int | None:
        """How many may share a card, once that is found out."""
        return self._most

    def room(self, card: Card) -> bool:
        """Whether another case may start on `card` now."""
        sharers = self._on[card].values()
        if not sharers:
            return True
        count = len(sharers) + 1
        if self._most is not None and count > self._most:
            return False
        return self._fits(card, count) and self._paid(count - 1)

    def _fits(self, card: Card, count: int) -> bool:
        total = self._memory.get(card)
        if total is None or self._peak is None:  # nothing is known of it, or of what a case takes
            return False
        return count * (self._peak * SLACK + OWN_BYTES) <= ROOM * total

    def _paid(self, count: int) -> bool:
        """Whether `count` cases on a card get enough done to try one more."""
        if count == 1:
            return True
        found = self._ratios.get(count)
        return bool(found) and self._gain(count) >= GROWTH

    def _gain(self, count: int) -> float:
        found = self._ratios[count]
        return count / (count - 1) * sum(found) / len(found)

    def started(self, card: Card, key: str) -> None:
        """The case `key` was given to `card`."""
        self._changed(card)
        self._on[card][key] = _Sharer()

    def ended(self, card: Card, key: str) -> None:
        """It left."""
        self._on[card].pop(key, None)
        self._changed(card)

    def crowded(self, card: Card) -> None:
        """One that has just left found the card's memory too small for all that shared it."""
        self._limit(len(self._on[card]))

    def round_began(self, card: Card, key: str, now: float, peak: int | None = None) -> None:
        """A round of it begins, at `now` in seconds, so that the one before is over. peak: bytes that this took."""
        case = self._on[card].get(key)
        if case is None:
            return
        if peak is not None:
            case.peak = peak
            self._peak = max(self._peak or 0, peak)
        count = len(self._on[card])
        if case.began is not None and case.still:
            case.seconds[count] = now - case.began
            before = case.seconds.get(count - 1)
            if before is not None and now > case.began:
                self._ratios[count].append(before / (now - case.began))
                if self._gain(count) < GROWTH:
                    self._limit(count - 1)
        case.began, case.still = now, True

    def _limit(self, count: int) -> None:
        self._most = max(1, count if self._most is None else min(self._most, count))

    def _changed(self, card: Card) -> None:
        for case in self._on[card].values():
            case.still = False


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
