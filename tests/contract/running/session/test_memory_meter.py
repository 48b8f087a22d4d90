"""What counts of a case's memory: what its processes allocate, once, and not the files that they map."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from mmap import ACCESS_READ, mmap
from pathlib import Path

import pytest

import ianvs
from ianvs.running.session.memory_meter import MemoryMeter
from tests.edits import edited
from tests.jobs import MAJORITY, write_job
from tests.marks import slow

SIZE = 200_000_000
pytestmark = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells this")


@contextmanager
def forked(*, allocate: int = 0) -> Iterator[None]:
    """A child process that has allocated so many bytes, and waits."""
    end, childs_end = os.pipe()
    waits, wake = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(wake)  # the only copy is its parent's
        kept = bytearray(b"1") * allocate
        os.write(childs_end, b"1")
        os.read(waits, 1)
        os._exit(len(kept) == 0)
    os.read(end, 1)
    try:
        yield
    finally:
        os.close(wake)
        os.waitpid(pid, 0)
        for descriptor in (end, childs_end, waits):
            os.close(descriptor)


def sizes(meter: MemoryMeter) -> float:
    return round(meter.peak_bytes() / SIZE, 1)


@pytest.mark.parametrize(
    "check",
    ["check_beginning", "check_short_peak", "check_mapped_file", "check_shared_memory", "check_forked_children"],
)
def test_what_counts(check: str) -> None:
    """In a process of its own: after thousands of tests, a collection of garbage frees more than is measured here."""
    code = f"import {__name__}; {__name__}.{check}()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[4])


def check_beginning() -> None:
    """Only what comes after the beginning counts."""
    before = bytearray(b"1") * SIZE
    meter = MemoryMeter()
    assert sizes(meter) == 0
    kept = bytearray(b"1") * SIZE
    assert sizes(meter) == 1
    del before, kept
    assert sizes(meter) == 1  # the highest so far
    meter.begin()
    assert sizes(meter) == 0


def check_short_peak() -> None:
    """What comes and goes between two readings counts."""
    meter = MemoryMeter()
    _highest_so_far_is_now()
    meter.begin()
    bytearray(b"1") * SIZE
    assert sizes(meter) == 1


def _highest_so_far_is_now() -> None:
    """The kernel's highest resident size of this process may be of an earlier test: begin it again (proc(5))."""
    Path("/proc/self/clear_refs").write_text("5")


def check_mapped_file() -> None:
    """A mapped file does not count."""
    with tempfile.TemporaryFile() as file:
        file.truncate(SIZE)
        _highest_so_far_is_now()
        meter = MemoryMeter()
        with mmap(file.fileno(), 0, access=ACCESS_READ) as kept:
            assert sum(kept[::4096]) == 0
            assert sizes(meter) == 0
        assert sizes(meter) == 0


def check_shared_memory() -> None:
    """Forked processes count with what they share once."""
    meter = MemoryMeter()
    with mmap(-1, SIZE) as kept:
        kept.write(bytes(SIZE))
        kept.flush()
        with forked():  # shared by both: it counts once
            assert sizes(meter) == 1


def check_forked_children() -> None:
    kept = bytearray(b"1") * SIZE
    meter = MemoryMeter()
    with forked(), forked():
        assert sizes(meter) == 0
    with forked(allocate=SIZE // 2):
        assert sizes(meter) == 0.5
    assert kept


def test_a_look_takes_hardly_any_time() -> None:
    """Whatever the process holds, unless it has forked: a thousandth of the time between two looks is 0.1 ms."""
    kept = bytearray(b"1") * (5 * SIZE)
    meter = MemoryMeter()
    began = time.process_time()
    for _ in range(100):
        meter.peak_bytes()
    assert (time.process_time() - began) / 100 < 0.002
    assert kept


# A plugin in the process of the case, and in an interpreter of its own.
TAKES = {
    "an array": "        self.kept = bytearray(b'1') * 200_000_000\n",
    "an array that goes": "        bytearray(b'1') * 200_000_000\n",
    "workers that share it": """
        import multiprocessing
        self.kept = bytearray(b'1') * 200_000_000
        self.children = [multiprocessing.get_context('fork').Process(target=wait_for_end) for _ in range(2)]
        for child in self.children:
            child.daemon = True
            child.start()
""",
    "a child": """
        import multiprocessing
        ready, done = multiprocessing.get_context('fork').Pipe()
        self.child = multiprocessing.get_context('fork').Process(target=allocate, args=[done])
        self.child.daemon = True
        self.child.start()
        ready.recv()
""",
}
HELPERS = """
import time

def wait_for_end():
    time.sleep(3600)

def allocate(done):
    kept = bytearray(b'1') * 200_000_000
    done.send(len(kept))
    time.sleep(3600)

"""


@pytest.mark.slow
@pytest.mark.parametrize("what", TAKES)
def test_a_plugin_takes_the_same_in_the_process_of_the_case_and_in_its_own(tmp_path: Path, what: str) -> None:
    """Its children live until their case has ended, so that the look at the end of the round sees them."""
    before = "        for label in"
    plugin = HELPERS + edited(MAJORITY, before, TAKES[what] + before)
    testenv = "dataset: {name: digits}\nscenario: {name: class-incremental, rounds: 1}\nmetrics: [{name: accuracy}]"
    peaks = []
    for where in ("local", "remote"):
        job = write_job(
            tmp_path / where, plugin=plugin, hyperparameters="", testenv=testenv, job="seeds: [0]", engine="local"
        )
        if where == "remote":
            algorithm = job.with_name("algorithm.yaml")
            algorithm.write_text(algorithm.read_text() + f"  python: {sys.executable}\n")
        [found] = ianvs.run(job)
        assert found.status == "finished", found.failure
        peaks.append(found.rounds[-1].peak_memory_bytes)
    local, remote = peaks
    assert local == pytest.approx(SIZE, rel=0.1)
    assert remote == pytest.approx(local, rel=0.1)


@pytest.mark.parametrize(("doing_what", "status"), [("allocates", "failed"), slow("maps", "finished")])
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
    job = write_job(
        tmp_path, plugin=plugin, hyperparameters="", job="seeds: [0]\nlimits: {memory_mb: 500}", engine="local"
    )
    [found] = ianvs.run(job)
    assert found.status == status, found.failure
    if status == "failed":
        assert found.failure is not None
        assert found.failure.kind == "memory"
        assert "limits.memory_mb: 500" in found.failure.message
