"""Places for cases to run in: so many at a time, and on a machine with accelerators so many per card.

The NVIDIA cards of this machine are found without starting CUDA, which a process can't share with what it forks. How
many cases share a card may be found out while they run (`cases_per_gpu: auto`).
"""

import math
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ianvs.config.spec import JobSpec, ResourcesSpec
from ianvs.processes.engines.engine import usable_cores

Card = int | str
"""What CUDA_VISIBLE_DEVICES calls a card: its index, "GPU-..." by its UUID, or "MIG-..." for an instance of one."""

_DRIVER = Path("/proc/driver/nvidia/gpus")
_INSTANCES = Path("/proc/driver/nvidia/capabilities")  # of cards that are divided: gpu0/mig/gi1/...
_LINE = re.compile(r"^\s*(?:GPU (?P<index>\d+):|MIG (?P<profile>\S+)).*\(UUID: (?P<uuid>(?:GPU|MIG)-[^)]+)\)", re.M)

_Ask = Callable[[Sequence[str]], str]


def _smi(arguments: Sequence[str]) -> str:
    try:
        return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def visible_gpus(
    environment: Mapping[str, str] = os.environ,
    driver: Path = _DRIVER,
    instances: Path = _INSTANCES,
    ask: _Ask = _smi,
) -> tuple[Card, ...]:
    """The cards that CUDA_VISIBLE_DEVICES leaves: an instance of a divided card (MIG) is a card of its own.

    As CUDA does, what follows the first entry that names no card is left out. ask: what nvidia-smi says.
    """
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        cards: list[Card] = []
        for part in map(str.strip, chosen.split(",")):
            if not (part.isdigit() or part.startswith(("GPU-", "MIG-"))):
                break
            cards.append(int(part) if part.isdigit() else part)
        return tuple(dict.fromkeys(cards))
    try:
        count = len(list(driver.iterdir()))
    except OSError:
        return ()
    divided = any(instances.glob("gpu*/mig/gi*"))
    return (_listed(ask(["-L"])) if divided else ()) or tuple(range(count))


def _listed(text: str) -> tuple[Card, ...]:
    """Cards by index, and in place of a divided one its instances, from `nvidia-smi -L`."""
    cards: list[Card] = []
    whole: Card | None = None
    for match in _LINE.finditer(text):
        if match["index"] is not None:
            whole = int(match["index"])
            cards.append(whole)
        else:
            if whole is not None and cards[-1] == whole:
                cards.pop()
            cards.append(match["uuid"])
    return tuple(cards)


def card_bytes(cards: Sequence[Card], ask: _Ask = _smi) -> dict[Card, int]:
    """Bytes of memory of those of `cards` of which nvidia-smi says it; of an instance, by the name of its profile."""
    if not cards:
        return {}
    sizes: dict[Card, int] = {}
    uuids: dict[str, int] = {}
    for line in ask(["--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits"]).splitlines():
        index, uuid, mebibytes = (*map(str.strip, line.split(",")), "", "")[:3]
        if index.isdigit() and mebibytes.isdigit():
            sizes[int(index)] = uuids[uuid] = int(mebibytes) << 20
    if any(isinstance(card, str) and card.startswith("MIG-") for card in cards):
        for match in _LINE.finditer(ask(["-L"])):
            size = re.search(r"\.(\d+)gb", match["profile"] or "")
            if size:
                uuids[match["uuid"]] = int(size[1]) << 30
    for card in cards:
        if isinstance(card, str):
            fitting = [size for uuid, size in uuids.items() if uuid.startswith(card)]  # CUDA takes the beginning, too
            if len(fitting) == 1:
                sizes[card] = fitting.pop()
    return {card: sizes[card] for card in cards if card in sizes}


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
    seconds: dict[int, float] = field(default_factory=dict)


class Sharing:
    """Says whether a card has room for one more case.

    docs/running.md has the rule. One more pays where n cases that each take t_n seconds for a round get done n / t_n in
    a second, and this has grown by GROWTH since one less shared the card. What is learnt on one card holds for all of
    them: they run the same job. most: how many may share a card, once that is found out.
    """

    def __init__(self, cards: Sequence[Card], memory: Mapping[Card, int]) -> None:
        """memory: bytes of each card. One of which they are not known takes one case."""
        self._memory = memory
        self._on: dict[Card | None, dict[str, _Sharer]] = {card: {} for card in (None, *cards)}
        self._ratios: dict[int, list[float]] = defaultdict(list)  # by n: t_(n-1) / t_n of cases that have known both
        self._peak: int | None = None
        self.most: int | None = None

    def room(self, card: Card) -> bool:
        """Whether another case may start on `card` now."""
        sharing = len(self._on[card])
        if sharing == 0:
            return True
        if self.most is not None and sharing >= self.most:
            return False
        paid = sharing == 1 or (sharing in self._ratios and self._gain(sharing) >= GROWTH)
        return paid and self._fits(card, sharing + 1)

    def _fits(self, card: Card, count: int) -> bool:
        total = self._memory.get(card)
        if total is None or self._peak is None:  # nothing is known of it, or of what a case takes
            return False
        return count * (self._peak * SLACK + OWN_BYTES) <= ROOM * total

    def _gain(self, count: int) -> float:
        ratios = self._ratios[count]
        return count / (count - 1) * sum(ratios) / len(ratios)

    def started(self, card: Card | None, key: str) -> None:
        self._changed(card)
        self._on[card][key] = _Sharer()

    def ended(self, card: Card | None, key: str) -> None:
        self._on[card].pop(key, None)
        self._changed(card)

    def crowded(self, card: Card | None) -> None:
        """One that has just left found the card's memory too small for all that shared it."""
        self._limit(len(self._on[card]))

    def round_began(self, card: Card | None, key: str, now: float, peak: int | None = None) -> None:
        """A round of it begins, at `now` in seconds, so that the one before is over. peak: bytes that this took."""
        case = self._on[card].get(key)
        if case is None:
            return
        if peak is not None:
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
        self.most = max(1, count if self.most is None else min(self.most, count))

    def _changed(self, card: Card | None) -> None:
        for case in self._on[card].values():
            case.still = False


@dataclass(frozen=True)
class Slot:
    """One place. gpu: its card, None on the host alone. alone: nobody shares the card. more: further cards of it alone.

    hidden: no card is to be seen, though there are some. cpus, memory: cores and bytes that it takes.
    """

    gpu: Card | None = None
    alone: bool = False
    more: tuple[Card, ...] = ()
    hidden: bool = False
    cpus: int = field(default=0, compare=False)
    memory: int = field(default=0, compare=False)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process has to see before it touches CUDA."""
        cards = () if self.gpu is None else (self.gpu, *self.more)
        return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, cards))}


def cores_of(job: JobSpec) -> int:
    """That cases may take together: those of this machine, or as many as the job wants to use at a time."""
    return max(usable_cores(), (job.jobs or 1) * job.threads)


class Slots:
    """At most `jobs` places; with cards, at most `per_gpu` of them on each, or as many as `sharing` finds room for.

    cpus, memory: cores and bytes of the machine, of which cases take what their algorithm's `resources` say. One whose
    algorithm says nothing takes a share of a card, `threads` cores and no memory, and no core is too many for it.
    """

    def __init__(
        self,
        jobs: int,
        gpus: tuple[Card, ...] = (),
        per_gpu: int = 1,
        sharing: Sharing | None = None,
        *,
        cpus: float = math.inf,
        memory: float = math.inf,
        threads: int = 1,
    ) -> None:
        self.sharing = sharing if gpus else None
        self._per_gpu = jobs if self.sharing else per_gpu
        self._free, self._threads = jobs, threads
        self._cpus, self._memory = cpus, memory
        self._used = dict.fromkeys(gpus, 0)

    def lacks(self, wanted: ResourcesSpec) -> str:
        """What a case with these resources waits for, in words; "" for no more than its turn."""
        if (cpus := self._cpus_of(wanted)) > self._cpus:
            return f"it takes {cpus} cpus, and {self._cpus:.0f} are free"
        if (wanted.memory or 0) > self._memory:
            return f"it takes {wanted.memory or 0:.3g} bytes of memory, and {self._memory:.3g} are free"
        empty = sum(not used for used in self._used.values())
        return f"it takes {wanted.gpus} gpus, and {empty} are free" if self._used and wanted.gpus > empty else ""

    def take(self, *, alone: bool = False, wanted: ResourcesSpec | None = None) -> Slot | None:
        """A place on the emptiest card, None while there is none. alone: a whole card. wanted: what it is to have."""
        if self._free < 1 or (wanted is not None and self.lacks(wanted)):
            return None
        slot = self._on_cards(alone, wanted)
        if slot is not None:
            slot = replace(slot, cpus=self._cpus_of(wanted), memory=0 if wanted is None else wanted.memory or 0)
            self._count(slot, 1)
        return slot

    def _cpus_of(self, wanted: ResourcesSpec | None) -> int:
        return self._threads if wanted is None else wanted.cpus or self._threads

    def _on_cards(self, alone: bool, wanted: ResourcesSpec | None) -> Slot | None:
        if not self._used:
            return Slot()
        if wanted is not None:
            empty = [card for card, used in self._used.items() if not used][: wanted.gpus]
            return Slot(empty[0], alone=True, more=tuple(empty[1:])) if empty else Slot(hidden=True)
        gpu = min(self._used, key=self._used.__getitem__)
        if self._used[gpu] + (self._per_gpu if alone else 1) > self._per_gpu:
            return None
        if self.sharing and not self.sharing.room(gpu):
            return None
        return Slot(gpu, alone or self._per_gpu == 1)

    def give(self, slot: Slot) -> None:
        self._count(slot, -1)

    def _count(self, slot: Slot, sign: int) -> None:
        self._free -= sign
        self._cpus -= sign * slot.cpus
        self._memory -= sign * slot.memory
        for card in () if slot.gpu is None else (slot.gpu, *slot.more):
            self._used[card] += sign * (self._per_gpu if slot.alone else 1)
