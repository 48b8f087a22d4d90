"""Cores, memory, cards, room on the disk, and what the kernel can keep closed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ianvs.base.errors import shown_path
from ianvs.cli.doctor.looked_at import Finding
from ianvs.cli.doctor.software import looked
from ianvs.processes.sealing.landlock import landlock_version

__all__ = ["card_findings", "folder_findings", "machine_findings", "memory_findings", "seal_findings"]

_GB = 1e9
_LITTLE_MEMORY = 2 * _GB  # a case with torch takes half of it
_LITTLE_ROOM = 1 * _GB
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def machine_findings(workspace: Path) -> Iterator[Finding]:
    """Of this machine, and of the folders that a run writes into."""
    import psutil

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding("ok", f"{usable} of {os.cpu_count()} cores can be used: as many cases run at a time, or --jobs N")
    memory = psutil.virtual_memory()
    yield from memory_findings(memory.total, memory.available, _limit())
    torch = looked()
    yield from card_findings(_drivers_cards(), torch.get("cuda"), torch.get("cards", ()))
    yield from folder_findings(workspace, "the workspace", "Choose another with --workspace.")
    yield from folder_findings(Path(tempfile.gettempdir()), "the folder for temporary files", "Set TMPDIR to another.")
    yield from seal_findings(landlock_version())


def memory_findings(total: float, available: float, limit: float | None) -> Iterator[Finding]:
    """Bytes; limit: of the container."""
    most = min(total, limit or total)
    said = f"{most / _GB:.0f} GB of memory, {min(available, most) / _GB:.1f} GB of it free"
    said += "" if limit is None or limit >= total else f" (the container's limit; the machine has {total / _GB:.0f} GB)"
    if min(available, most) < _LITTLE_MEMORY:
        yield Finding("note", said, "Run one case at a time: --jobs 1. Close what else takes memory.")
    else:
        yield Finding("ok", said)


def card_findings(driver: Sequence[str] | None, built: str | None, usable: Sequence[str]) -> Iterator[Finding]:
    """driver: cards that the driver sees; None: there is no driver. built: the CUDA that torch was built for.

    usable: cards that torch sees.
    """
    if usable:
        yield Finding("ok", f"cards that torch can use: {', '.join(usable)}")
    elif not driver:
        yield Finding("ok", "no graphics card, or no driver of one: everything runs on the CPU")
    elif built is None:
        remedy = "pip install --force-reinstall torch torchvision, from an index with CUDA builds: see pytorch.org."
        yield Finding("note", f"{', '.join(driver)}: torch can't use it, it is a build for CPUs", remedy)
    else:
        remedy = "Update the driver (`nvidia-smi` says up to which CUDA it goes), or look at CUDA_VISIBLE_DEVICES."
        yield Finding("note", f"{', '.join(driver)}: torch, built for CUDA {built}, can't use it", remedy)


def folder_findings(folder: Path, what: str, remedy: str) -> Iterator[Finding]:
    """Whether it, or the nearest folder above that there is, can be written."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
        room = shutil.disk_usage(there).free
    except OSError as error:
        yield Finding("wrong", f"{what}, {shown_path(folder)}, can't be written: {error.strerror}", remedy)
        return
    said = f"{what}, {shown_path(folder)}, can be written; {room / _GB:.0f} GB are free"
    yield Finding("note", said, f"That is little. {remedy}") if room < _LITTLE_ROOM else Finding("ok", said)


def seal_findings(version: int) -> Iterator[Finding]:
    """version: of Landlock, 0 where there is none."""
    if version:
        yield Finding("ok", f"Landlock {version}: the kernel keeps exams closed to learners")
    else:
        remedy = (
            "Linux 5.13 or later has it, unless it is switched off or the container forbids it. Without it learners "
            "are kept apart by processes alone: fine for methods that you trust (docs/trust.md)."
        )
        yield Finding("note", "no Landlock: the kernel can't keep exams closed to learners", remedy)


def _limit() -> float | None:
    try:
        said = _CGROUP.read_text().strip()
    except OSError:
        return None
    return float(said) if said.isdecimal() else None


def _drivers_cards() -> list[str] | None:
    if shutil.which("nvidia-smi") is None:
        return None
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [line.replace(", ", ", driver ") for line in done.stdout.splitlines()]
