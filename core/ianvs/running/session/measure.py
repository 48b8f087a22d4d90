"""What a case costs: time, memory of the accelerator, sizes. The memory of the host: see `memory_meter`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ianvs.base.errors import PluginError
from ianvs.processes.proc import cpu_seconds


@dataclass(frozen=True)
class Spent:
    """Seconds of wall-clock, and of processors (see `cpu_seconds`). cut: answers that were too long to be kept."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    cut: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds, self.cut + other.cut)

    def __sub__(self, other: Spent) -> Spent:
        seconds, cpu = self.seconds - other.seconds, self.cpu_seconds - other.cpu_seconds
        return Spent(max(0.0, seconds), max(0.0, cpu), self.cut - other.cut)


NOTHING_SPENT = Spent()


def spent_so_far() -> Spent:
    """Now, from any beginning: of two of these the difference counts."""
    return Spent(time.perf_counter(), cpu_seconds())


@contextmanager
def spending() -> Iterator[list[Spent]]:
    """Context manager: the list has what was spent within, once it is over, with what an accelerator had to do."""
    spent: list[Spent] = []
    synchronise()
    began = spent_so_far()
    try:
        yield spent
    finally:
        synchronise()
        spent.append(spent_so_far() - began)


class Meter:
    """Takes the time of what this process does between `start` and `stop`, without that within `paused`.

    It waits for the accelerator at both ends: see `synchronise`.
    """

    def __init__(self) -> None:
        self._spent, self._runs = NOTHING_SPENT, False
        self._began = NOTHING_SPENT

    def start(self) -> None:
        self._spent, self._runs = NOTHING_SPENT, True
        self._resume()

    def stop(self) -> Spent:
        self._pause()
        self._runs = False
        return self._spent

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Not counted is what happens within; where nothing is counted, it makes no difference."""
        if not self._runs:
            yield
            return
        self._pause()
        try:
            yield
        finally:
            self._resume()

    def _resume(self) -> None:
        synchronise()
        self._began = spent_so_far()

    def _pause(self) -> None:
        synchronise()
        self._spent += spent_so_far() - self._began


def peak_gpu_bytes() -> int | None:
    """Highest memory that torch took on the accelerator so far; None if it took none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return int(torch.cuda.max_memory_allocated())


def memory_size(plugins: Iterable[object]) -> tuple[int | None, int | None]:
    """(samples, bytes) of the plugins' `memory`, their stores of old samples; None for what none of them tells."""
    held = (getattr(plugin, "memory", None) for plugin in plugins)
    memories = [memory for memory in held if isinstance(memory, Sized)]
    sizes = [int(size) for memory in memories if (size := getattr(memory, "nbytes", None)) is not None]
    return sum(map(len, memories)) if memories else None, sum(sizes) if sizes else None


def saved_bytes(folder: Path, limit_mb: float) -> int:
    """Size of all files below `folder`, a model that was saved; holes count, links don't.

    Raises PluginError for more than `limit_mb` (10^6 bytes): nothing of it has been read then.
    """
    sizes = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
    total = sum(sizes.values())
    if total > limit_mb * 1e6:
        largest = max(sizes, key=sizes.__getitem__)
        raise PluginError(
            f"save() wrote {total / 1e6:,.0f} MB, more than limits.saved_mb: {limit_mb:g}. The largest file is "
            f"'{largest.relative_to(folder)}' with {sizes[largest] / 1e6:,.0f} MB, holes included. Save less, or "
            "raise the limit in the job's file.",
            code="out-of-range",
        )
    return total


def synchronise() -> None:
    """Wait for what is queued on an accelerator, so that its time is counted where it belongs."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def compiled_graphs() -> tuple[int, int]:
    """How many graphs torch.compile has found in its cache in this process so far, and how many it has compiled."""
    utils = sys.modules.get("torch._dynamo.utils")
    counted = utils.counters["inductor"] if utils is not None else {}
    return counted.get("fxgraph_cache_hit", 0), counted.get("fxgraph_cache_miss", 0)


def compiled_code(before: tuple[int, int]) -> str:
    """How much of what torch.compile has needed since then was compiled earlier, in words; "": it needed nothing.

    Args:
        before: `compiled_graphs()` then. A process may have had other cases.
    """
    hits, misses = (now - earlier for now, earlier in zip(compiled_graphs(), before, strict=True))
    return f"{hits} of {hits + misses} compiled graphs came from the cache" if hits or misses else ""
