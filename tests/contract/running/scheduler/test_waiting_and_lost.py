"""Cases that wait in the queue of an engine, and cases whose machine is lost."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import ianvs
from ianvs.running.progress import PlainProgress
from ianvs.running.scheduler.case_loop import MAX_LOSSES, Listener
from ianvs.store import JobStore
from tests.edits import edited
from tests.jobs import MAJORITY, write_job
from tests.waiting import wait_for

# Local, but each case waits for the file `go` first, and is lost `losses` times while it trains in round 3.
ENGINE = """
from pathlib import Path

from ianvs.processes.engines import Engine, Event, LocalEngine


class Preemptible(Engine):
    elsewhere = True

    def __init__(self, workload, *, losses: int = 0, go: str = ""):
        self.inner, self.losses, self.go = LocalEngine(workload), losses, Path(go)
        self.slots, self.waiting, self.told, self.lost = self.inner.slots, [], [], set()

    def submit(self, task):
        self.waiting.append(task)
        self.told.append(Event(task.key, "queued", "Priority"))

    def events(self, timeout):
        if self.go.exists():
            for task in self.waiting:
                self.inner.submit(task)
            self.waiting.clear()
        told, self.told = self.told, []
        for event in self.inner.events(min(timeout, 0.1)):
            if event.kind == "progress" and event.payload.get("round") == 3 and self.losses:
                self.losses -= 1
                self.lost.add(event.key)
                self.inner.cancel(event.key, force=True)
            if event.kind == "ended" and event.key in self.lost:
                self.lost.discard(event.key)
                told.append(Event(event.key, "lost", "node n1 is gone"))
            told.append(event)
        return told

    def cancel(self, key, *, force=False):
        self.inner.cancel(key, force=force)

    def close(self):
        self.inner.close()
"""
SLOW = edited(MAJORITY, "        for label in", "        import time; time.sleep(0.3)\n        for label in")


def job(folder: Path, losses: int, extra: str = "") -> Path:
    (folder / "engine.py").write_text(ENGINE)
    engine = f"{{name: Preemptible, url: ./engine.py, losses: {losses}, go: {folder / 'go'}}}"
    said = f"seeds: [0]\nretries: 0\nengine: {engine}\n{extra}"
    return write_job(folder, plugin=SLOW, hyperparameters="- bias: {values: [0]}", job=said)


class Told(Listener):
    def __init__(self) -> None:
        self.words: list[Any] = []

    def queued(self, case: Any, reason: str) -> None:
        self.words.append(("queued", reason))

    def started(self, case: Any) -> None:
        self.words.append("started")

    def lost(self, case: Any, reason: str) -> None:
        self.words.append(("lost", reason))

    def retried(self, case: Any, failure: Any) -> None:
        self.words.append("retried")


@pytest.mark.slow
def test_a_lost_case_goes_on_and_uses_up_no_retry(tmp_path: Path) -> None:
    path, told = job(tmp_path, losses=3), Told()
    (tmp_path / "go").touch()
    [found] = ianvs.run(path, listener=told)
    assert (found.status, [round_.index for round_ in found.rounds]) == ("finished", [0, 1, 2, 3, 4, 5])
    once = [("queued", "Priority"), "started"]
    assert told.words == [*[*once, ("lost", "node n1 is gone")] * 3, *once]


def test_a_case_that_is_lost_again_and_again_without_a_round_between_fails(tmp_path: Path) -> None:
    path, told = job(tmp_path, losses=99), Told()
    (tmp_path / "go").touch()
    [found] = ianvs.run(path, listener=told)
    assert found.failure is not None
    assert (found.failure.kind, found.failure.error, len(found.rounds)) == ("lost", "Lost", 3)
    assert "node n1 is gone" in found.failure.message
    assert "memory" not in found.failure.message
    assert told.words.count("started") == MAX_LOSSES


@pytest.mark.slow
def test_what_waits_does_not_look_as_if_it_ran(tmp_path: Path) -> None:
    path = job(tmp_path, losses=0)
    seen: list[str] = []

    class Watching(PlainProgress):
        def queued(self, case: Any, reason: str) -> None:
            super().queued(case, reason)
            threading.Thread(target=self.look).start()

        def look(self) -> None:
            store = JobStore(tmp_path / "ws", "test")
            try:
                wait_for(lambda: bool(store.queue()))
                status = [sys.executable, "-m", "ianvs", "status", "-f", str(path)]
                seen.append(subprocess.run(status, capture_output=True, text=True).stdout)
            finally:
                (tmp_path / "go").touch()

    said = io.StringIO()
    with Watching(said) as listener:
        [found] = ianvs.run(path, listener=listener)
    waiting, _ = said.getvalue().splitlines()[-2:]
    assert waiting.startswith("majority, seed 0: ") and "Priority" in waiting
    assert found.status == "finished"
    assert "(Priority)" in seen[0]
    assert "1 waiting" in seen[0]
    assert not list((tmp_path / "ws").rglob("queue.json")), "a run that is over leaves no note"


def test_the_queue_of_a_run_that_was_killed_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = JobStore(tmp_path, "job")
    store.folder.mkdir()
    store.note_queue({"a": "Priority"})
    assert store.queue() == {"a": "Priority"}
    monkeypatch.setattr("time.time", lambda: 1e12)
    assert store.queue() == {}
