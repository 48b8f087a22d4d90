"""What a case costs: time, memory, sizes."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Stopwatch", "folder_bytes", "memory_size", "peak_gpu_bytes", "peak_host_bytes", "stopwatch"]


class Stopwatch:
    """Seconds of wall-clock between entering and leaving `stopwatch()`."""

    seconds = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Waits for the accelerator at both ends, so that work still queued there is counted where it belongs."""
    watch = Stopwatch()
    _synchronise()
    start = time.perf_counter()
    try:
        yield watch
    finally:
        _synchronise()
        watch.seconds = time.perf_counter() - start


def peak_host_bytes() -> int:
    """Highest resident size of this process so far."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def peak_gpu_bytes() -> int | None:
    """Highest memory that torch took on the accelerator so far; None if it took none."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    return int(torch.cuda.max_memory_allocated())


def memory_size(plugin: Any) -> tuple[int | None, int | None]:
    """(samples, bytes) of the plugin's `memory`, its store of old samples; None for what it doesn't tell."""
    memory = getattr(plugin, "memory", None)
    try:
        samples = len(memory)  # type: ignore[arg-type]
    except TypeError:
        return None, None
    size = getattr(memory, "nbytes", None)
    return samples, None if size is None else int(size)


def folder_bytes(folder: Path) -> int:
    """Size of all files below `folder`."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _synchronise() -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
