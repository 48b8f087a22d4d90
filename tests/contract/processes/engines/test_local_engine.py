"""What the local engine's processes leave behind, and what they stand."""

from __future__ import annotations

import _ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ianvs.processes.engines import LocalEngine, Task, Workload
from ianvs.processes.engines.temporary import engine_folders
from tests.contract.engines.test_engines import task, until_ended
from tests.errors import errors_of
from tests.waiting import wait_for

ROOT = Path(__file__).parents[4]
LINE = 100


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    made = LocalEngine(Workload(jobs=3))
    yield made
    made.close()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process too."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_task_that_kills_its_parent_fails_alone(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(task("write_after", (tmp_path / "a", 0.5), key="a"))
    engine.submit(task("kill_parent"))
    engine.submit(task("write_after", (tmp_path / "b", 0.5), key="b"))
    ended = [(event.key, event.payload) for event in until_ended(engine, 3) if event.kind == "ended"]
    assert sorted(ended) == [("a", 0), ("b", 0), ("one", -signal.SIGKILL)]
    engine.submit(task("succeed", key="later"))
    assert until_ended(engine)[-1].payload == 0


def test_tasks_that_all_kill_their_parent_all_end(engine: LocalEngine) -> None:
    for key in ("one", "two", "three"):
        engine.submit(task("kill_parent", key=key))
    ended = [event.key for event in until_ended(engine, 3) if event.kind == "ended"]
    assert sorted(ended) == ["one", "three", "two"]


def test_a_task_that_no_message_can_hold_is_refused_by_its_size_and_others_go_on(engine: LocalEngine) -> None:
    engine.submit(task("succeed", "x" * 190_000, key="long"))
    assert errors_of(engine.submit, task("succeed", "x" * 250_000, key="longer")) == [("invalid-engine", "")]
    assert [event.key for event in until_ended(engine) if event.kind == "ended"] == ["long"]


@pytest.mark.slow
def test_a_log_is_bounded_at_all_times_and_keeps_its_first_and_its_last_part(
    engine: LocalEngine, tmp_path: Path
) -> None:
    log, lines, sizes = tmp_path / "log.txt", 900_000, [0]
    engine.submit(task("shout", lines, log=log))
    while not any(event.kind == "ended" for event in engine.events(0.02)):
        sizes.append(log.stat().st_size if log.exists() else 0)
    assert max(*sizes, log.stat().st_size) <= 50_000_000
    text = log.read_bytes()
    assert len(text) > 35_000_000
    assert text.startswith(b"first of all\n" + b"0" * 99)
    assert text.endswith(b"%099d\nlast of all\n" % (lines - 1))
    [(notice, left_out)] = re.findall(rb"(\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n)", text)
    assert len(text) - len(notice) + int(left_out) == lines * LINE + len(b"first of all\nlast of all\n")


def test_temporary_folders_of_killed_runs_are_swept_by_the_next(temporary: Path, tmp_path: Path) -> None:
    code = (
        "from ianvs.processes.engines import LocalEngine, Task, Workload\nengine = LocalEngine(Workload())\n"
        "from pathlib import Path\n"
        f"engine.submit(Task('one', 'tests.contract.tasks:ignore_signals', Path({str(tmp_path / 'file')!r})))\n"
        "while True: engine.events(1)"
    )
    run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "TMPDIR": str(temporary)})
    wait_for((tmp_path / "file").exists)
    below = psutil.Process(run.pid).children(recursive=True)
    for process in (psutil.Process(run.pid), *below):
        process.suspend()  # so that nobody has time to clean up
    for process in (psutil.Process(run.pid), *below):
        process.kill()
    run.wait()
    wait_for(lambda: not any(process.is_running() for process in below))
    assert list(temporary.iterdir())
    next_run = LocalEngine(Workload())
    next_run.submit(task("succeed"))
    until_ended(next_run)
    next_run.close()
    assert not list(temporary.iterdir())


def test_a_folder_that_is_in_use_or_not_ours_is_not_swept(temporary: Path) -> None:
    mine, *sockets = engine_folders()
    other_host = temporary / "ianvs-00000000-abc"
    other_host.mkdir()
    another, *more_sockets = engine_folders()
    assert set(temporary.iterdir()) == {mine, other_host, another}
    for folder in (*sockets, *more_sockets):
        assert folder.is_dir()
        shutil.rmtree(folder)


def test_the_forkserver_ends_with_its_parent_even_while_it_imports(tmp_path: Path) -> None:
    (tmp_path / "slow_module.py").write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\ntime.sleep(3600)\n"
    )
    code = (
        "import time; from ianvs.processes.engines import LocalEngine, Workload\n"
        "engine = LocalEngine(Workload(preload=('slow_module',))); time.sleep(3600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    wait_for(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
    parent.kill()
    parent.wait()
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_a_run_that_ends_while_its_tasks_start_shows_no_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    engine = LocalEngine(Workload(jobs=3))
    for key in "abcdefgh":
        engine.submit(task("succeed", key=key))
    engine.close()
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_sigterm_to_every_process_leaves_the_answer_to_the_supervisor(engine: LocalEngine, tmp_path: Path) -> None:
    engine.submit(Task("one", "tests.contract.tasks:until_told", tmp_path / "file"))
    wait_for((tmp_path / "file").exists)
    for process in psutil.Process().children(recursive=True):
        process.terminate()
    events = until_ended(engine)
    assert [event.payload for event in events if event.kind == "result"] == ["stopped"]
    engine.submit(task("succeed", key="later"))
    assert until_ended(engine)[-1].payload == 0


@pytest.mark.slow
def test_tasks_are_not_forked_from_what_has_asked_for_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA refuses to work there. A library may ask while it is imported; its driver is one by name here."""
    shutil.copy(_ctypes.__file__, tmp_path / "libcuda.so.1")
    load = "import ctypes, pathlib, torch\nctypes.CDLL(pathlib.Path(__file__).with_name('libcuda.so.1'))\n"
    (tmp_path / "asks_for_cards.py").write_text(load + "torch.cuda.is_available()\n")
    (tmp_path / "asks_nothing.py").write_text(load)
    monkeypatch.syspath_prepend(tmp_path)
    engine = LocalEngine(Workload(preload=("asks_nothing", "asks_for_cards")))
    try:
        engine.submit(Task("one", "tests.contract.tasks:imported", ("asks_for_cards", "asks_nothing")))
        events = until_ended(engine)
        assert [event.payload for event in events if event.kind == "result"] == [["asks_nothing"]]
    finally:
        engine.close()
