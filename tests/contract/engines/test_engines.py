"""What every engine promises."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import ianvs
from ianvs.processes.engines import Engine, Event, Task, Workload
from ianvs.processes.engines.ray.ray_engine import RayEngine
from tests.errors import errors_of, printed
from tests.jobs import write_job
from tests.waiting import PATIENCE, wait_for

TASKS = "tests.contract.tasks"


def task(name: str, argument: Any = None, key: str = "one", log: Path | None = None) -> Task:
    return Task(key, f"{TASKS}:{name}", argument, log)


def until_ended(engine: Engine, count: int = 1, seconds: float = PATIENCE) -> list[Event]:
    found: list[Event] = []
    deadline = time.monotonic() + seconds
    while sum(event.kind == "ended" for event in found) < count:
        assert time.monotonic() < deadline, f"still waiting after {found}"
        found += engine.events(0.2)
    return found


def started(engine: Engine) -> int:
    """The process of the one task, as soon as it has one."""
    while True:
        for event in engine.events(20):
            if event.kind == "started":
                return int(event.payload)


def test_a_task_that_succeeds_starts_reports_returns_and_ends(engine: Engine) -> None:
    engine.submit(task("succeed", [1, 2]))
    events = until_ended(engine)
    begun = [event for event in events if event.kind != "queued"]
    assert [event.kind for event in begun] == ["started", "progress", "result", "ended"]
    assert begun[2].payload == {"got": [1, 2]}
    assert begun[3].payload == 0
    assert begun == events[-4:], "what is queued has not started"


def test_a_task_starts_and_goes_on_though_nobody_asks_for_events(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("write_after", (tmp_path / "file", 0.1)))
    wait_for((tmp_path / "file").exists)
    assert until_ended(apart)[-1] == Event("one", "ended", 0)


def test_an_exception_is_an_exit_code_and_not_the_engines_end(engine: Engine) -> None:
    engine.submit(task("fail", "x"))
    assert until_ended(engine)[-1] == Event("one", "ended", 1)
    engine.submit(task("succeed", key="two"))
    assert until_ended(engine)[-1] == Event("two", "ended", 0)


def test_the_exit_status_that_a_task_chooses_is_reported(engine: Engine) -> None:
    engine.submit(task("leave", 130))
    assert until_ended(engine)[-1].payload == 130


def test_a_flood_of_output_and_reports_ends_well(engine: Engine, tmp_path: Path) -> None:
    engine.submit(task("flood", 4000, log=tmp_path / "log.txt"))
    events = until_ended(engine)
    assert events[-1].payload == 0
    assert [event.payload for event in events if event.kind == "result"] == ["done"]


def test_what_a_task_prints_goes_to_its_log(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("flood", 3, log=tmp_path / "deep" / "log.txt"))
    until_ended(apart)
    assert (tmp_path / "deep" / "log.txt").read_text().count("x" * 1023) == 3


def test_the_traceback_of_an_exception_is_in_the_log(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("fail", "cheese", log=tmp_path / "log.txt"))
    until_ended(apart)
    log = (tmp_path / "log.txt").read_text()
    assert "Traceback" in log and "cheese" in log


def test_a_secret_of_a_task_is_not_in_its_log(apart: Engine, tmp_path: Path) -> None:
    told = replace(task("fail", "an open sesame", log=tmp_path / "log.txt"), secrets=frozenset(["open sesame"]))
    apart.submit(told)
    until_ended(apart)
    assert " an ***\n" in (tmp_path / "log.txt").read_text()
    assert "sesame" not in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(("name", "number"), [("kill_itself", signal.SIGKILL), ("segfault", signal.SIGSEGV)])
def test_a_task_that_dies_does_not_hurt_the_others(
    apart: Engine, tmp_path: Path, name: str, number: signal.Signals
) -> None:
    apart.submit(task("write_after", (tmp_path / "file", 0.3), key="other"))
    apart.submit(task(name, log=tmp_path / "log.txt"))
    ended = {event.key: event.payload for event in until_ended(apart, 2) if event.kind == "ended"}
    assert ended == {"one": -number, "other": 0}
    assert (tmp_path / "file").read_text() == "written"


def test_a_segfault_leaves_its_stack_in_the_log(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("segfault", log=tmp_path / "log.txt"))
    until_ended(apart)
    assert "Segmentation fault" in (tmp_path / "log.txt").read_text()


def test_a_task_that_closes_all_its_pipes_still_ends(apart: Engine) -> None:
    apart.submit(task("close_pipes"))
    assert until_ended(apart)[-1].kind == "ended"


def test_tasks_run_side_by_side(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("until_told", tmp_path / "a", key="a"))
    apart.submit(task("until_told", tmp_path / "b", key="b"))
    wait_for(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
    apart.cancel("a")
    apart.cancel("b")
    results = [event.payload for event in until_ended(apart, 2) if event.kind == "result"]
    assert results == ["stopped", "stopped"]


def test_a_task_that_does_not_listen_is_ended_by_force(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("ignore_signals", tmp_path / "file"))
    wait_for((tmp_path / "file").exists)
    apart.cancel("one")
    apart.cancel("one", force=True)
    assert until_ended(apart)[-1].payload == -signal.SIGKILL


def test_nothing_that_a_task_started_outlives_it(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("leave_children", tmp_path / "pids"))
    until_ended(apart)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def test_after_close_nothing_of_a_task_runs(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("ignore_signals", tmp_path / "file"))
    pid = started(apart)
    wait_for((tmp_path / "file").exists)
    apart.close()
    wait_for(lambda: not psutil.pid_exists(pid))


def test_every_engine_gives_the_results_of_inline(apart_yaml: str, tmp_path: Path) -> None:
    found = []
    for number, engine in enumerate(("inline", apart_yaml)):
        results = ianvs.run(write_job(tmp_path / str(number), job=f"seeds: [0, 1]\njobs: 2\nengine: {engine}"))
        assert {case.status for case in results} == {"finished"}
        found.append([(case.case.id, case.matrices["accuracy"].values.tolist()) for case in results])
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_task_that_waits_in_ray_says_why_and_is_ended_by_force(ray_of_this_module: RayEngine, tmp_path: Path) -> None:
    engine = RayEngine(Workload(jobs=3), address="auto")  # one more than there are CPUs
    for key in "abc":
        engine.submit(task("until_told", tmp_path / key, key=key))
    wait_for(lambda: sum((tmp_path / key).exists() for key in "abc") == 2)
    [waiting] = [key for key in "abc" if not (tmp_path / key).exists()]
    told: list[Event] = []
    wait_for(lambda: told.extend(engine.events(0.2)) or any(event.kind == "queued" for event in told))
    [reason] = {event.payload for event in told if (event.key, event.kind) == (waiting, "queued")}
    printed(reason)
    engine.cancel(waiting, force=True)
    ended = [event for event in until_ended(engine) if event.kind == "ended"]
    engine.close()
    assert ended == [Event(waiting, "ended", -signal.SIGKILL)]
    assert not (tmp_path / waiting).exists()


@pytest.mark.slow
def test_a_worker_of_ray_that_dies_is_a_task_that_was_killed(ray_of_this_module: RayEngine, tmp_path: Path) -> None:
    engine = RayEngine(Workload(jobs=2), address="auto")
    engine.submit(task("ignore_signals", tmp_path / "file", log=tmp_path / "log.txt"))
    pid = started(engine)
    wait_for((tmp_path / "file").exists)
    worker = psutil.Process(pid).parent().parent()  # type: ignore[union-attr]
    assert worker is not None
    worker.kill()
    lost, ended = until_ended(engine)
    assert (lost.kind, ended) == ("lost", Event("one", "ended", -signal.SIGKILL))
    wait_for(lambda: not psutil.pid_exists(pid))
    assert "lost" in (tmp_path / "log.txt").read_text()
    engine.submit(task("succeed", key="one"))
    assert until_ended(engine)[-1] == Event("one", "ended", 0)
    engine.close()


@pytest.mark.slow
def test_ray_shows_a_task_no_card_that_it_was_not_given(ray_of_this_module: RayEngine) -> None:
    engine = RayEngine(Workload(jobs=1), address="auto")
    engine.submit(task("variable", "CUDA_VISIBLE_DEVICES"))
    assert [event.payload for event in until_ended(engine) if event.kind == "result"] == [""]
    engine.close()


@pytest.mark.slow
def test_what_ray_can_not_run_at_all_is_no_kill(ray_of_this_module: RayEngine, tmp_path: Path) -> None:
    engine = RayEngine(Workload(jobs=1, preload=(None,)), address="auto")  # type: ignore[arg-type]
    engine.submit(task("succeed", log=tmp_path / "log.txt"))
    assert until_ended(engine)[-1] == Event("one", "ended", 1)
    assert (tmp_path / "log.txt").read_text()
    engine.close()


def test_when_the_forkserver_dies_its_tasks_are_reported_as_killed(apart: Engine, tmp_path: Path) -> None:
    apart.submit(task("ignore_signals", tmp_path / "file"))
    pid = started(apart)
    wait_for((tmp_path / "file").exists)
    parent = psutil.Process(pid).parent()
    assert parent is not None
    if parent.pid == os.getpid():
        pytest.skip("nobody stands between it and the supervisor")
    parent.kill()
    assert until_ended(apart)[-1] == Event("one", "ended", -signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(pid))


@pytest.mark.slow
def test_ray_that_is_not_installed_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert errors_of(RayEngine, Workload()) == [("missing-package", "")]
