"""The local engine without forks: jobs give the same results, and it does with what Windows and macOS have, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest

import ianvs
from ianvs.plugins.authors_files import imports_from
from ianvs.plugins.loader import load, place_for_others
from ianvs.processes.engines import LocalEngine, Task, Workload
from ianvs.processes.engines.capped_log import MAX_LOG_BYTES
from tests.contract.engines.test_engines import task, until_ended
from tests.errors import errors_of
from tests.jobs import write_job
from tests.waiting import wait_for

ROOT = Path(__file__).parents[4]
SPAWNED = "{name: local, start: spawn}"

# What Linux has and Windows or macOS has not, as far as Python itself does without it here.
ELSEWHERE = """
import os, platform, socket, sys

import psutil  # which needs them here, and has its own ways elsewhere

for name in ("fork", "forkpty", "memfd_create", "killpg", "setpgid", "sched_getaffinity"):
    delattr(os, name)
del socket.SOCK_SEQPACKET
sys.modules.update(fcntl=None, resource=None)
platform.system = lambda: "Windows"
"""


def scores(results: ianvs.Results) -> list[object]:
    return [(one.case.id, one.status, one.matrices["accuracy"].values.tolist()) for one in results]


@pytest.mark.slow
def test_a_job_gives_the_same_bits_without_what_linux_alone_has(tmp_path: Path) -> None:
    """In every process of the job, by a sitecustomize."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(ELSEWHERE)
    there = write_job(tmp_path / "there", job="seeds: [0, 1]\njobs: 2", engine="local")
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    command = [sys.executable, "-m", "ianvs", "-f", str(there)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    here = ianvs.run(write_job(tmp_path / "here", job="seeds: [0, 1]\njobs: 2"))
    found = ianvs.load_results(tmp_path / "there" / "ws")
    assert scores(found) == scores(here)
    assert {one.status for one in found} == {"finished"}
    assert all(one.rounds[-1].train_cpu_seconds is not None for one in found)


def test_an_unknown_start_is_told_before_anything_runs(tmp_path: Path) -> None:
    [(code, _)] = errors_of(ianvs.run, write_job(tmp_path, job="seeds: [0]\nengine: {name: local, start: sprout}"))
    assert code in ("wrong-type", "invalid-choice", "invalid-engine")


@pytest.mark.slow
def test_a_script_without_a_guard_is_not_run_again_in_every_task(tmp_path: Path) -> None:
    job = write_job(tmp_path / "job", job=f"seeds: [0]\nengine: {SPAWNED}", hyperparameters="")
    script = tmp_path / "script.py"
    script.write_text(f"import ianvs\nprint('begun', flush=True)\nprint(len(ianvs.run({str(job)!r})))\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240, cwd=ROOT)
    assert (done.returncode, done.stdout.splitlines()) == (0, ["begun", "1"]), done.stderr


def test_when_the_supervisor_is_killed_its_tasks_end_with_all_that_they_started(tmp_path: Path) -> None:
    code = (
        "from ianvs.processes.engines import LocalEngine, Task, Workload\n"
        "engine = LocalEngine(Workload(), start='spawn')\n"
        f"engine.submit(Task('one', '{__name__}:start_sleeper', {str(tmp_path / 'pids')!r}))\n"
        "while True: engine.events(1)\n"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    wait_for((tmp_path / "pids").exists)
    pids = json.loads((tmp_path / "pids").read_text())
    supervisor.kill()
    supervisor.wait()
    wait_for(lambda: not any(map(psutil.pid_exists, pids)))


def start_sleeper(argument: str, report: object) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    beside = Path(f"{argument}.new")
    beside.write_text(json.dumps([os.getpid(), child.pid]))
    beside.rename(argument)
    time.sleep(600)


@pytest.mark.slow
def test_temporary_files_go_with_the_task_and_logs_stay_below_their_cap(tmp_path: Path) -> None:
    engine = LocalEngine(Workload(), start="spawn")
    engine.submit(task("shout", MAX_LOG_BYTES // 100 + 100_000, log=tmp_path / "log.txt"))
    engine.submit(Task("two", "tests.contract.processes.engines.test_spawned_tasks:leave_a_file", None))
    folders = [event.payload for event in until_ended(engine, 2) if event.kind == "result"]
    assert not any(Path(folder).exists() for folder in folders) and len(folders) == 1
    text = (tmp_path / "log.txt").read_text()
    assert len(text) <= MAX_LOG_BYTES and text.startswith("first of all") and text.endswith("last of all\n")
    assert "bytes left out" in text
    engine.close()


def leave_a_file(argument: object, report: object) -> str:
    import tempfile

    handle, path = tempfile.mkstemp()
    os.close(handle)
    return str(Path(path).parent)


@pytest.mark.parametrize("package", ["", "RATE = 2\n"])
def test_spawned_processes_import_a_plugin_of_a_package_under_the_same_name(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "approach").mkdir()
    (tmp_path / "approach/method.py").write_text("from .base import Base\n\n\nclass Method(Base):\n    pass\n")
    (tmp_path / "approach/base.py").write_text("class Base:\n    answer = 'base'\n")
    if package:
        (tmp_path / "approach/__init__.py").write_text(package)
    loaded = load(str(tmp_path / "approach/method.py"), "Method")
    with imports_from({}), loaded.active() as build:
        place_for_others(build.__module__)
        script = f"import sys; sys.path[:0] = {sys.path!r}; import {build.__module__} as m; print(m.Method.answer)"
        found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "base\n"
