"""Measures costs of a case: time, accelerator memory, sizes. `memory_meter` measures host memory."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ianvs.base.errors import PluginError
from ianvs.processes.interpreters.worker_memory import memory_size
from ianvs.processes.proc import cpu_seconds

_STORE_NAMES = ("buffer", "replay_buffer", "memory_buffer", "exemplars", "exemplar_set")  # instead of `memory`


@dataclass(frozen=True)
class Spent:
    """Seconds of wall-clock and of CPU time (see `cpu_seconds`). cut: number of truncated replies."""

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
    """Return the present clocks; only the difference of two such values has a meaning."""
    return Spent(time.perf_counter(), cpu_seconds())


@contextmanager
def spending() -> Iterator[list[Spent]]:
    """Context manager: afterwards the list has the time spent inside, including queued work of an accelerator."""
    spent: list[Spent] = []
    synchronise()
    began = spent_so_far()
    try:
        yield spent
    finally:
        synchronise()
        spent.append(spent_so_far() - began)


def memory_sizes(plugins: Iterable[object]) -> tuple[int | None, int | None, str]:
    """Measure the plugins' `memory`, their stores of old samples.

    Returns:
        (samples, bytes, note): None for unknown values; a note why a number is unknown, "" if none is or nothing is
            stored.
    """
    sizes: list[tuple[int, int | None, str]] = []
    plugins = list(plugins)
    for memory in [getattr(plugin, "memory", None) for plugin in plugins]:
        if memory is None:
            continue
        samples, size, unknown = memory_size(memory)
        if samples is not None:
            sizes.append((samples, size, getattr(memory, "unknown", unknown)))
    if not sizes:
        for plugin, name in itertools.product(plugins, _STORE_NAMES):
            if (store := getattr(plugin, name, None)) is not None and memory_size(store)[0]:
                note = (
                    "Memory_samples and Memory_bytes are blank: samples are counted in an attribute `memory`, and "
                    f"{type(plugin).__name__} has `{name}`; write `self.memory = self.{name}` if it holds old samples"
                )
                return None, None, note
        return None, None, ""
    samples = sum(samples for samples, _, _ in sizes)
    counted = [size for _, size, _ in sizes if size is not None]
    if len(counted) == len(sizes):
        return samples, sum(counted), ""
    unknown = next((unknown for _, size, unknown in sizes if size is None and unknown), "")
    remark = f"Memory_bytes is blank: `memory` holds {unknown}; give it a property `nbytes`" if unknown else ""
    return samples, None, remark


def saved_bytes(folder: Path, limit_mb: float) -> int:
    """Return the size of a saved model, all files below `folder`. Holes of sparse files count, links don't.

    Raises PluginError above `limit_mb` (10^6 bytes), before anything is read.
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
    """Wait for queued work of an accelerator, so that its time is attributed correctly."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def compiled_graphs() -> tuple[int, int]:
    """Return how many graphs torch.compile has found in its cache in this process so far, and how many it has
    compiled.
    """
    utils = sys.modules.get("torch._dynamo.utils")
    counted = utils.counters["inductor"] if utils is not None else {}
    return counted.get("fxgraph_cache_hit", 0), counted.get("fxgraph_cache_miss", 0)


def compiled_code(before: tuple[int, int]) -> str:
    """Return how much of what torch.compile has needed since then was compiled earlier, in words; "": it needed
    nothing.

    Args:
        before: `compiled_graphs()` then. A process may have had other cases.
    """
    hits, misses = (now - earlier for now, earlier in zip(compiled_graphs(), before, strict=True))
    return f"{hits} of {hits + misses} compiled graphs came from the cache" if hits or misses else ""
