"""What counts of a case's memory: its own, not the files that it maps."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ianvs
from ianvs.running.session.watchdog import memory_of
from tests.edits import edited
from tests.families import family
from tests.jobs import MAJORITY, write_job

SIZE = 1 << 27
pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells this")


@contextmanager
def doing(code: str, *arguments: str) -> Iterator[int]:
    """The pid of a process that has done it, and waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"import mmap, os, sys\n{code}\nprint(flush=True)\ninput()", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.kill()
        process.communicate()


def grown(code: str, *arguments: str) -> tuple[int, int]:
    """By how many times SIZE the memory is more than that of a process that does nothing: quickly, and exactly."""
    found = []
    for what in ("pass", code):
        with doing(what, *arguments) as pid:
            found.append((memory_of([pid], 1e12), memory_of([pid])))
    return tuple(round((after - before) / SIZE) for before, after in zip(*found, strict=True))  # type: ignore[return-value]


TOUCH = f"for at in range(0, {SIZE}, 4096): kept[at] if len(sys.argv) > 1 else kept.__setitem__(at, 1)"


def test_a_mapped_file_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    with path.open("wb") as file:
        file.truncate(SIZE)
    read = f"file = open(sys.argv[1], 'rb'); kept = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n{TOUCH}"
    assert grown(read, str(path)) == (0, 0)


@pytest.mark.parametrize(
    ("code", "quickly"),
    [
        (f"kept = bytearray({SIZE})\n{TOUCH}", 1),
        (f"kept = mmap.mmap(-1, {SIZE})\n{TOUCH}", 1),  # shared, of no file
        (f"file = os.memfd_create('x'); os.write(file, bytes({SIZE}))", 1),  # not mapped by anybody
        (f"file = os.memfd_create('x'); os.truncate(file, {SIZE}); kept = mmap.mmap(file, {SIZE})\n{TOUCH}", 2),
    ],
)
def test_memory_of_its_own_counts_once(code: str, quickly: int) -> None:
    assert grown(code) == (quickly, 1)


def test_what_two_processes_share_counts_once() -> None:
    with doing(f"kept = bytearray({SIZE})\n{TOUCH}\nchild = os.fork() or input()\nprint(child)") as pid:
        child = int(Path(f"/proc/{pid}/task/{pid}/children").read_text())
        try:
            assert round(memory_of([pid, child]) / SIZE) == 1
            assert round(memory_of([pid, child], 1e12) / SIZE) == 2
        finally:
            os.kill(child, 9)


@pytest.mark.parametrize(("doing_what", "status"), family([("allocates", "failed"), ("maps", "finished")]))
def test_a_limit_is_on_what_a_learner_allocates(tmp_path: Path, doing_what: str, status: str) -> None:
    path = tmp_path / "cache"
    with path.open("wb") as cache:
        cache.truncate(600_000_000)
    does = {
        "maps": f"file = open({str(path)!r}, 'rb'); sum(mmap.mmap(file.fileno(), 0, access=1)[::4096])",
        "allocates": "kept = bytearray(600_000_000); time.sleep(3600)",  # until it is seen
    }
    before = "        for label in"
    waits = f"        import mmap, time\n        {does[doing_what]}\n        time.sleep(0.5)\n"
    plugin = edited(MAJORITY, before, waits + before)
    job = write_job(tmp_path, plugin=plugin, hyperparameters="", job="seeds: [0]\nlimits: {memory_mb: 500}")
    [found] = ianvs.run(job)
    assert found.status == status, found.failure
    if status == "failed":
        assert found.failure is not None
        assert found.failure.kind == "memory"
        assert "limits.memory_mb: 500" in found.failure.message
