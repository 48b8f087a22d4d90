"""Slots for cases: a number of cases at a time, and on a machine with GPUs a number of cases per GPU.

The NVIDIA GPUs of this machine are found without initialising CUDA, which does not survive a fork. The number of cases
that share a GPU may be determined while they run (`cases_per_gpu: auto`).
"""

import math
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ianvs.config.spec import JobSpec, ResourcesSpec
from ianvs.processes.engines.engine import usable_cores

GpuId = int | str
"""A GPU in CUDA_VISIBLE_DEVICES: its index, "GPU-..." by its UUID, or "MIG-..." for an instance of one."""

_DRIVER = Path("/proc/driver/nvidia/gpus")
_INSTANCES = Path("/proc/driver/nvidia/capabilities")  # of partitioned GPUs: gpu0/mig/gi1/...
_LINE = re.compile(r"^\s*(?:GPU (?P<index>\d+):|MIG (?P<profile>\S+)).*\(UUID: (?P<uuid>(?:GPU|MIG)-[^)]+)\)", re.M)

_Ask = Callable[[Sequence[str]], str]


def _nvidia_smi(arguments: Sequence[str]) -> str:
    try:
        return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def visible_gpus(
    environment: Mapping[str, str] = os.environ,
    driver: Path = _DRIVER,
    instances: Path = _INSTANCES,
    ask: _Ask = _nvidia_smi,
) -> tuple[GpuId, ...]:
    """Return the GPUs in CUDA_VISIBLE_DEVICES. An instance of a partitioned GPU (MIG) counts as a GPU.

    As in CUDA, all entries after the first invalid one are ignored. ask: runs nvidia-smi.
    """
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        gpu_ids: list[GpuId] = []
        for part in map(str.strip, chosen.split(",")):
            if not (part.isdigit() or part.startswith(("GPU-", "MIG-"))):
                break
            gpu_ids.append(int(part) if part.isdigit() else part)
        return tuple(dict.fromkeys(gpu_ids))
    try:
        count = len(list(driver.iterdir()))
    except OSError:
        return ()
    divided = any(instances.glob("gpu*/mig/gi*"))
    return (_parse_gpu_list(ask(["-L"])) if divided else ()) or tuple(range(count))


def _parse_gpu_list(text: str) -> tuple[GpuId, ...]:
    """Parse `nvidia-smi -L`: GPUs by index, and instances instead of a partitioned GPU."""
    gpu_ids: list[GpuId] = []
    whole: GpuId | None = None
    for match in _LINE.finditer(text):
        if match["index"] is not None:
            whole = int(match["index"])
            gpu_ids.append(whole)
        else:
            if whole is not None and gpu_ids[-1] == whole:
                gpu_ids.pop()
            gpu_ids.append(match["uuid"])
    return tuple(gpu_ids)


def gpu_memory_bytes(gpu_ids: Sequence[GpuId], ask: _Ask = _nvidia_smi) -> dict[GpuId, int]:
    """Return the memory of those `gpu_ids` that nvidia-smi knows; of an instance, by the name of its profile."""
    if not gpu_ids:
        return {}
    sizes: dict[GpuId, int] = {}
    uuids: dict[str, int] = {}
    for line in ask(["--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits"]).splitlines():
        index, uuid, mebibytes = (*map(str.strip, line.split(",")), "", "")[:3]
        if index.isdigit() and mebibytes.isdigit():
            sizes[int(index)] = uuids[uuid] = int(mebibytes) << 20
    if any(isinstance(gpu_id, str) and gpu_id.startswith("MIG-") for gpu_id in gpu_ids):
        for match in _LINE.finditer(ask(["-L"])):
            size = re.search(r"\.(\d+)gb", match["profile"] or "")
            if size:
                uuids[match["uuid"]] = int(size[1]) << 30
    for gpu_id in gpu_ids:
        if isinstance(gpu_id, str):
            fitting = [size for uuid, size in uuids.items() if uuid.startswith(gpu_id)]  # CUDA also accepts a prefix
            if len(fitting) == 1:
                sizes[gpu_id] = fitting.pop()
    return {gpu_id: sizes[gpu_id] for gpu_id in gpu_ids if gpu_id in sizes}


MIN_SPEEDUP = 1.05  # of a GPU's throughput that one more case has to reach
MEMORY_SHARE = 0.9  # of a GPU's memory that cases may use
# Of each case, which torch does not count: CUDA's context in its process and in that which answers.
CUDA_CONTEXT_BYTES = 1 << 30
MEMORY_SLACK = 1.2  # later rounds may use more than the first


@dataclass
class _Sharer:
    """A case on a GPU. began: start of its round; unchanged: whether the number of cases on the GPU stayed the same.
    seconds: duration of its rounds by the number of cases on the GPU."""

    began: float | None = None
    unchanged: bool = False
    seconds: dict[int, float] = field(default_factory=dict)


class Sharing:
    """Decides whether a GPU has room for one more case.

    docs/running.md has the rule. With n cases that take t_n seconds a round, the throughput is n / t_n. A further case
    is worth it if the last one increased the throughput by MIN_SPEEDUP. Measurements apply to all GPUs, since they run
    the same job. most: the number of cases per GPU, once it is determined.
    """

    def __init__(self, gpu_ids: Sequence[GpuId], memory: Mapping[GpuId, int]) -> None:
        """memory: bytes of each GPU. A GPU of unknown memory gets one case."""
        self._memory = memory
        self._on: dict[GpuId | None, dict[str, _Sharer]] = {gpu_id: {} for gpu_id in (None, *gpu_ids)}
        self._ratios: dict[int, list[float]] = defaultdict(list)  # by n: t_(n-1) / t_n of cases that have measured both
        self._peak: int | None = None
        self.most: int | None = None

    def has_room(self, gpu_id: GpuId) -> bool:
        """Return whether another case may start on a GPU now."""
        sharing = len(self._on[gpu_id])
        if sharing == 0:
            return True
        if self.most is not None and sharing >= self.most:
            return False
        paid = sharing == 1 or (sharing in self._ratios and self._speedup(sharing) >= MIN_SPEEDUP)
        return paid and self._fits(gpu_id, sharing + 1)

    def _fits(self, gpu_id: GpuId, count: int) -> bool:
        total = self._memory.get(gpu_id)
        if total is None or self._peak is None:  # unknown memory of the GPU or of a case
            return False
        return count * (self._peak * MEMORY_SLACK + CUDA_CONTEXT_BYTES) <= MEMORY_SHARE * total

    def _speedup(self, count: int) -> float:
        ratios = self._ratios[count]
        return count / (count - 1) * sum(ratios) / len(ratios)

    def started(self, gpu_id: GpuId | None, key: str) -> None:
        self._changed(gpu_id)
        self._on[gpu_id][key] = _Sharer()

    def ended(self, gpu_id: GpuId | None, key: str) -> None:
        self._on[gpu_id].pop(key, None)
        self._changed(gpu_id)

    def out_of_memory(self, gpu_id: GpuId | None) -> None:
        """Handle a case that ran out of memory on a shared GPU."""
        self._update_limit(len(self._on[gpu_id]))

    def round_began(self, gpu_id: GpuId | None, key: str, now: float, peak: int | None = None) -> None:
        """Record the start of a round at `now`, in seconds. peak: GPU memory of the case so far, in bytes."""
        case = self._on[gpu_id].get(key)
        if case is None:
            return
        if peak is not None:
            self._peak = max(self._peak or 0, peak)
        count = len(self._on[gpu_id])
        if case.began is not None and case.unchanged:
            case.seconds[count] = now - case.began
            before = case.seconds.get(count - 1)
            if before is not None and now > case.began:
                self._ratios[count].append(before / (now - case.began))
                if self._speedup(count) < MIN_SPEEDUP:
                    self._update_limit(count - 1)
        case.began, case.unchanged = now, True

    def _update_limit(self, count: int) -> None:
        self.most = max(1, count if self.most is None else min(self.most, count))

    def _changed(self, gpu_id: GpuId | None) -> None:
        for case in self._on[gpu_id].values():
            case.unchanged = False


@dataclass(frozen=True)
class Slot:
    """A slot for a case. gpu: its GPU, None for the CPU. alone: the GPU is not shared. more: further GPUs.

    hidden: whether existing GPUs are hidden from it. cpus, memory: its cores and bytes.
    """

    gpu: GpuId | None = None
    alone: bool = False
    more: tuple[GpuId, ...] = ()
    hidden: bool = False
    cpus: int = field(default=0, compare=False)
    memory: int = field(default=0, compare=False)

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of the process."""
        gpu_ids = () if self.gpu is None else (self.gpu, *self.more)
        return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpu_ids))}


def cores_of(job: JobSpec) -> int:
    """Return the cores for all cases: those of this machine, or `jobs` times `threads` if that is more."""
    return max(usable_cores(), (job.jobs or 1) * job.threads)


class Slots:
    """At most `jobs` slots; with GPUs, at most `per_gpu` of them on each, or as many as `sharing` allows.

    cpus, memory: cores and bytes of the machine, of which cases use their algorithm's `resources`. Without `resources`
    a case uses a share of a GPU and `threads` cores, and does not wait for cores or memory.
    """

    def __init__(
        self,
        jobs: int,
        gpus: tuple[GpuId, ...] = (),
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

    def missing_resources(self, wanted: ResourcesSpec) -> str:
        """Describe the missing resources of a case; "" if it only waits for its turn."""
        if (cpus := wanted.cpus or self._threads) > self._cpus:
            return f"it takes {cpus} cpus, and {self._cpus:.0f} are free"
        if (wanted.memory or 0) > self._memory:
            return f"it takes {wanted.memory or 0:.3g} bytes of memory, and {self._memory:.3g} are free"
        empty = sum(not used for used in self._used.values())
        return f"it takes {wanted.gpus} gpus, and {empty} are free" if self._used and wanted.gpus > empty else ""

    def take(self, *, alone: bool = False, wanted: ResourcesSpec | None = None) -> Slot | None:
        """Return a slot on the GPU with the fewest cases; None: there is none. alone: on a GPU that is not shared."""
        if self._free < 1 or (wanted is not None and self.missing_resources(wanted)):
            return None
        slot = Slot(cpus=self._threads)
        if wanted is not None:
            gpu_ids = tuple(gpu_id for gpu_id, used in self._used.items() if not used)[: wanted.gpus]
            cpus, hidden = wanted.cpus or self._threads, bool(self._used) and not gpu_ids
            first = gpu_ids[0] if gpu_ids else None
            slot = Slot(first, bool(gpu_ids), gpu_ids[1:], hidden, cpus, wanted.memory or 0)
        elif self._used:
            gpu = min(self._used, key=self._used.__getitem__)
            full = self._used[gpu] + (self._per_gpu if alone else 1) > self._per_gpu
            if full or (self.sharing and not self.sharing.has_room(gpu)):
                return None
            slot = Slot(gpu, alone or self._per_gpu == 1, cpus=self._threads)
        self._count(slot, 1)
        return slot

    def give(self, slot: Slot) -> None:
        self._count(slot, -1)

    def _count(self, slot: Slot, sign: int) -> None:
        self._free -= sign
        self._cpus -= sign * slot.cpus
        self._memory -= sign * slot.memory
        for gpu_id in () if slot.gpu is None else (slot.gpu, *slot.more):
            self._used[gpu_id] += sign * (self._per_gpu if slot.alone else 1)
