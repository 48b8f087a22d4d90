"""What a command costs: processor seconds, memory of its processes, disk. Shared by the benchmarks of sizes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_SAMPLED_EVERY = 0.02  # seconds
RUN_ONE = """
import json, sys, time
import ianvs
from ianvs.running.scheduler.case_loop import Listener

class Begun(Listener):
    def started(self, case):
        self.at = time.time()

begun = Begun()
[case] = ianvs.run(sys.argv[1], listener=begun)
assert case.status == "finished", case.failure
noted = json.loads((case.directory / "files" / "noted.json").read_text())
"""
"""Runs the one case of a job: `begun.at` is when it was started, `noted` what its plugin wrote into its folder."""


@dataclass(frozen=True)
class Cost:
    """seconds: of processors, children included. wall: by the clock. process, tree: the peak of anonymous and shared
    memory, in bytes, of its largest process and of all together (what they share is counted for each). first: of the
    process that was started. code: the exit code. said: its output."""

    seconds: float
    wall: float
    process: int
    tree: int
    first: int
    code: int
    said: str


def ianvs(*arguments: str | Path, folder: Path, limit: float = 3600.0) -> Cost:
    """Run `ianvs` with `arguments` in `folder`. Raises RuntimeError if it fails or is not done in `limit` seconds."""
    return measured([sys.executable, "-m", "ianvs", *map(str, arguments)], folder, limit=limit)


def measured(
    command: Sequence[str], folder: Path, *, limit: float = 3600.0, environment: Mapping[str, str] | None = None
) -> Cost:
    """Run `command` in `folder`, sampling its memory. Raises RuntimeError as `ianvs` does."""
    begun = time.monotonic()
    said = folder / ".said"
    with said.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
        )
        one = tree = first = 0
        while True:
            found, status, used = os.wait4(process.pid, os.WNOHANG)
            if found:
                break
            if time.monotonic() - begun > limit:
                process.kill()
                raise RuntimeError(f"{' '.join(command)} was not done in {limit:g} seconds:\n{said.read_text()}")
            sizes = own_memory(process.pid)
            one, tree = max(one, max(sizes, default=0)), max(tree, sum(sizes))
            first = max([first, *sizes[:1]])
            time.sleep(_SAMPLED_EVERY)
    process.returncode = code = os.waitstatus_to_exitcode(status)
    text = said.read_text(errors="replace")
    if code != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {code}:\n{text}")
    return Cost(used.ru_utime + used.ru_stime, time.monotonic() - begun, one, tree, first, code, text)


def own_memory(pid: int) -> list[int]:
    """Of a process and of all below it, what each has: see `memory`."""
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return [memory(pid), *(memory(one.pid) for one in below)]


def memory(pid: int | str) -> int:
    """Bytes of anonymous and shared memory that a process holds right now, without mapped files; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


def disk(folder: Path) -> int:
    """The bytes that the files below `folder` occupy; a file with several names once."""
    seen = {(found.st_dev, found.st_ino): found.st_blocks * 512 for found in map(os.lstat, folder.rglob("*"))}
    return sum(seen.values())


@dataclass(frozen=True)
class Row:
    """A line of a table. limits: the most that is allowed, by the name of the figure; {} for what is only shown."""

    name: str
    figures: Mapping[str, float]
    limits: Mapping[str, float]

    @property
    def met(self) -> bool:
        return all(self.figures[name] <= limit for name, limit in self.limits.items())

    def __str__(self) -> str:
        shown = ", ".join(
            f"{name} {value:.4g}" + (f" (at most {self.limits[name]:g})" if name in self.limits else "")
            for name, value in self.figures.items()
        )
        verdict = "" if not self.limits else "  met" if self.met else "  NOT MET"
        return f"{self.name}: {shown}{verdict}"
