"""What every engine promises."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.execution.engine import Engine, Event, Task
from core.execution.inline import InlineEngine
from core.execution.local import LocalEngine

TASKS = "tests.contracts.tasks"


@pytest.fixture(params=["inline", "local"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    made: Engine = InlineEngine() if request.param == "inline" else LocalEngine(2)
    yield made
    made.close()


@pytest.fixture
def local() -> Iterator[LocalEngine]:
    made = LocalEngine(2)
    yield made
    made.close()


def task(name: str, argument: Any = None, key: str = "one", log: Path | None = None) -> Task:
    return Task(key, f"{TASKS}:{name}", argument, log)


def until_ended(engine: Engine, count: int = 1, seconds: float = 30.0) -> list[Event]:
    found: list[Event] = []
    deadline = time.monotonic() + seconds
    while sum(event.kind == "ended" for event in found) < count:
        assert time.monotonic() < deadline, f"still waiting after {found}"
        found += engine.events(0.2)
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_task_that_succeeds_starts_reports_returns_and_ends(engine: Engine) -> None:
    engine.submit(task("succeed", [1, 2]))
    events = until_ended(engine)
    assert [event.kind for event in events] == ["started", "progress", "result", "ended"]
    assert events[2].payload == {"got": [1, 2]}
    assert events[3].payload == 0


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


def test_what_a_task_prints_goes_to_its_log(local: LocalEngine, tmp_path: Path) -> None:
    local.submit(task("flood", 3, log=tmp_path / "deep" / "log.txt"))
    until_ended(local)
    assert (tmp_path / "deep" / "log.txt").read_text().count("x" * 1023) == 3


def test_the_traceback_of_an_exception_is_in_the_log(local: LocalEngine, tmp_path: Path) -> None:
    local.submit(task("fail", "cheese", log=tmp_path / "log.txt"))
    until_ended(local)
    assert "RuntimeError: no luck with cheese" in (tmp_path / "log.txt").read_text()


@pytest.mark.parametrize(("name", "number"), [("kill_itself", signal.SIGKILL), ("segfault", signal.SIGSEGV)])
def test_a_task_that_dies_does_not_hurt_the_others(
    local: LocalEngine, tmp_path: Path, name: str, number: signal.Signals
) -> None:
    local.submit(task("write_after", (tmp_path / "file", 0.3), key="other"))
    local.submit(task(name, log=tmp_path / "log.txt"))
    ended = {event.key: event.payload for event in until_ended(local, 2) if event.kind == "ended"}
    assert ended == {"one": -number, "other": 0}
    assert (tmp_path / "file").read_text() == "written"


def test_a_segfault_leaves_its_stack_in_the_log(local: LocalEngine, tmp_path: Path) -> None:
    local.submit(task("segfault", log=tmp_path / "log.txt"))
    until_ended(local)
    assert "Segmentation fault" in (tmp_path / "log.txt").read_text()


def test_a_task_that_closes_all_its_pipes_still_ends(local: LocalEngine) -> None:
    local.submit(task("close_pipes"))
    assert until_ended(local)[-1].kind == "ended"


def test_tasks_run_side_by_side(local: LocalEngine, tmp_path: Path) -> None:
    local.submit(task("until_told", tmp_path / "a", key="a"))
    local.submit(task("until_told", tmp_path / "b", key="b"))
    wait_for(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
    local.cancel("a")
    local.cancel("b")
    results = [event.payload for event in until_ended(local, 2) if event.kind == "result"]
    assert results == ["stopped", "stopped"]


def test_a_task_that_does_not_listen_is_ended_by_force(local: LocalEngine, tmp_path: Path) -> None:
    local.submit(task("ignore_signals", tmp_path / "file"))
    wait_for((tmp_path / "file").exists)
    local.cancel("one")
    local.cancel("one", force=True)
    assert until_ended(local)[-1].payload == -signal.SIGKILL


def test_nothing_that_a_task_started_outlives_it(local: LocalEngine, tmp_path: Path) -> None:
    local.submit(task("leave_children", tmp_path / "pids"))
    until_ended(local)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def test_after_close_nothing_of_a_task_runs(tmp_path: Path) -> None:
    engine = LocalEngine(2)
    engine.submit(task("ignore_signals", tmp_path / "file"))
    pid = next(event.payload for event in engine.events(10) if event.kind == "started")
    wait_for((tmp_path / "file").exists)
    engine.close()
    wait_for(lambda: not psutil.pid_exists(pid))


def test_when_the_zygote_dies_its_tasks_are_reported_as_killed(local: LocalEngine, tmp_path: Path) -> None:
    local.submit(task("ignore_signals", tmp_path / "file"))
    pid = next(event.payload for event in local.events(10) if event.kind == "started")
    wait_for((tmp_path / "file").exists)
    psutil.Process(pid).parent().kill()  # type: ignore[union-attr]
    assert until_ended(local)[-1] == Event("one", "ended", -signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(pid))
