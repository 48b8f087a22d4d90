"""Cases that overrun, die, or find no room: what the supervisor does about them."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent

import psutil
import pytest

import ianvs
from ianvs.base.types import CaseResult, Failure
from ianvs.running.planning.plan import PlannedCase
from ianvs.running.scheduler.case_loop import Listener
from ianvs.running.scheduler.slots import Slot, Slots, visible_gpus
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, split_rounds, write_job
from tests.marks import slow
from tests.waiting import wait_for

ONE_CASE = {"hyperparameters": "- bias: {values: [0]}", "engine": "local"}


def notes(folder: Path) -> Path:
    """Where a plugin may write: in the folders above its workspace it can't make files."""
    (folder / "notes").mkdir(exist_ok=True)
    return folder / "notes"


def doing(what: str) -> str:
    """Majority that does `what` in round 3 of the case with seed 0."""
    then = indent(f"if (round, seed) == (3, 0):\n{indent(what, '    ')}\n", 8 * " ")
    return edited(MAJORITY, "        for label in", f"{then}        for label in")


def job(extra: str, seeds: str = "[0, 1]") -> str:
    return f"seeds: {seeds}\njobs: 2\n{extra}"


TROUBLES = {
    "none": "pass",
    "hangs": "import time; time.sleep(3600)",
    "ignores signals": "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)",
    "memory": "import numpy, time; x = numpy.ones(100_000_000); time.sleep(3600)",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "exit status": "import os; os._exit(74)",
    "crashes once": "import os; mark.exists() or (mark.touch(), os.kill(os.getpid(), 9))",
}
"""What a case does in round 3."""


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> dict[object, CaseResult]:
    """One job with a case for each of TROUBLES, two at a time: the processes of a job are slow to start."""
    folder = tmp_path_factory.mktemp("troubled")
    plugin = edited(
        MAJORITY, "fail_in_round=None):", 'fail_in_round=None, trouble="none"):\n        self.trouble = trouble'
    )
    act = f"""\
        if round == 3:
            from pathlib import Path
            exec({TROUBLES!r}[self.trouble], {{"mark": Path({str(notes(folder) / "mark")!r})}})
        with open({str(notes(folder))!r} + "/" + self.trouble, "a") as file:
            print(round, file=file)
"""
    path = write_job(
        folder,
        plugin=edited(plugin, "        for label in", f"{act}        for label in"),
        hyperparameters=f"- trouble: {{values: {[*TROUBLES]}}}",
        job=job("limits: {memory_mb: 500, round_seconds: 10, grace_seconds: 0.2}", "[0]"),  # a round needs under one
        engine="local",
    )
    return {found.case.hyperparameters["trouble"]: found for found in ianvs.run(path)}


def failure_of(case: CaseResult) -> Failure:
    assert case.failure is not None
    return case.failure


def test_cases_beside_those_that_end_badly_finish(troubled: dict[object, CaseResult]) -> None:
    finished = [trouble for trouble, case in troubled.items() if case.status == "finished"]
    assert finished == ["none", "crashes once"]


def test_a_case_over_its_time_is_ended(troubled: dict[object, CaseResult]) -> None:
    assert failure_of(troubled["hangs"]).kind == "timeout"
    printed(failure_of(troubled["hangs"]).message)
    assert len(troubled["hangs"].rounds) == 3


def test_a_case_that_ignores_the_wish_to_stop_is_killed(troubled: dict[object, CaseResult]) -> None:
    assert failure_of(troubled["ignores signals"]).kind == "timeout"


def test_a_case_over_its_memory_is_ended_with_the_limit_named(troubled: dict[object, CaseResult]) -> None:
    failure = failure_of(troubled["memory"])
    assert (failure.kind, failure.error) == ("memory", "MemoryError")
    assert "limits.memory_mb: 500" in failure.message


def test_what_is_said_of_a_killed_case_fits_the_signal(troubled: dict[object, CaseResult]) -> None:
    failure = failure_of(troubled["crashes"])
    assert (failure.kind, failure.error) == ("killed", "SIGSEGV")
    printed(failure.message)


def test_a_plugin_can_not_stop_the_run_by_its_exit_status(troubled: dict[object, CaseResult]) -> None:
    assert troubled["exit status"].status == "failed"


def test_a_killed_case_is_tried_once_more_and_continues_where_it_was(troubled: dict[object, CaseResult]) -> None:
    folder = troubled["crashes once"].directory.parents[2]
    assert (notes(folder) / "crashes once").read_text().split() == ["1", "2", "3", "4", "5"]


@pytest.mark.slow
def test_the_time_of_a_whole_case_has_a_limit(tmp_path: Path) -> None:
    path = write_job(
        tmp_path,
        plugin=doing(TROUBLES["hangs"]),
        job=job("limits: {case_seconds: 20, grace_seconds: 0.2}"),  # the other case needs under one
        **ONE_CASE,
    )
    hung, other = ianvs.run(path)
    assert failure_of(hung).kind == "timeout"
    printed(failure_of(hung).message)
    assert (len(hung.rounds), other.status) == (3, "finished")


@pytest.mark.slow
def test_pages_that_a_case_shares_with_its_children_count_once(tmp_path: Path) -> None:
    share = """\
import numpy, os, time
x = numpy.ones(25_000_000)
for _ in range(3):
    if not os.fork():
        time.sleep(2)
        os._exit(0)
time.sleep(1.5)"""
    path = write_job(tmp_path, plugin=doing(share), job=job("limits: {memory_mb: 800}", seeds="[0]"), **ONE_CASE)
    [found] = ianvs.run(path)
    assert (found.status, found.failure) == ("finished", None)


@pytest.mark.slow
def test_memory_of_children_counts(tmp_path: Path) -> None:
    eat = (
        "import numpy, os, time\n"
        "for _ in range(3):\n    if not os.fork(): x = numpy.ones(25_000_000); time.sleep(3600)\n"
        "time.sleep(3600)"
    )
    path = write_job(tmp_path, plugin=doing(eat), job=job("limits: {memory_mb: 500}", seeds="[0]"), **ONE_CASE)
    [found] = ianvs.run(path)
    assert found.failure is not None
    assert found.failure.kind == "memory"


@pytest.mark.slow
def test_sigterm_ends_a_run_as_ctrl_c_does(tmp_path: Path) -> None:
    started, gate = notes(tmp_path) / "started", notes(tmp_path) / "gate"
    wait = f"""\
import os, pathlib, time
print(os.getpid(), file=open({str(started)!r}, "w"), flush=True)
while not pathlib.Path({str(gate)!r}).exists():
    time.sleep(0.01)"""
    path = write_job(tmp_path, plugin=doing(wait), job=job("", seeds="[0]"), **ONE_CASE)
    command = [sys.executable, "-m", "ianvs", "-f", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: started.exists() and started.read_text().strip())
    process.terminate()
    assert process.stderr is not None
    while not process.stderr.readline().startswith("stopping"):
        assert process.poll() is None
    gate.touch()
    process.communicate()
    assert process.returncode == 130
    assert [planned.state for planned in ianvs.plan(path)] == ["unfinished"]
    assert (tmp_path / "ws" / "test" / "rank" / "leaderboard.md").exists()
    assert not psutil.pid_exists(int(started.read_text()))
    [found] = ianvs.run(path, engine="inline")  # continues where it was
    assert [round_.index for round_ in found.rounds] == list(range(6))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dying", "error"),
    [
        ("import os; os.abort()", "SIGABRT"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        ("import os, signal as s; s.signal(1, s.SIG_DFL); os.kill(os.getpid(), 1)", "SIGHUP"),
    ],
)
def test_further_signals_are_named(tmp_path: Path, dying: str, error: str) -> None:
    path = write_job(tmp_path, plugin=doing(dying), job=job("retries: 0", seeds="[0]"), **ONE_CASE)
    [found] = ianvs.run(path)
    assert (failure_of(found).kind, failure_of(found).error) == ("killed", error)
    printed(failure_of(found).message)


@pytest.mark.slow
def test_a_case_that_is_killed_every_time_fails_after_the_second(tmp_path: Path) -> None:
    tries = notes(tmp_path) / "tries"
    plugin = doing(f"print('x', file=open({str(tries)!r}, 'a'), flush=True); import os; os.kill(os.getpid(), 9)")
    dead, other = ianvs.run(write_job(tmp_path, plugin=plugin, job=job(""), **ONE_CASE))
    assert dead.failure is not None
    assert (dead.failure.kind, dead.failure.error, other.status) == ("killed", "SIGKILL", "finished")
    assert tries.read_text().count("x") == 2


@pytest.mark.slow
def test_a_plugin_that_kills_the_process_above_it_fails_alone(tmp_path: Path) -> None:
    plugin = doing("import os, time; os.kill(os.getppid(), 9); time.sleep(3600)")
    dead, *others = ianvs.run(write_job(tmp_path, plugin=plugin, job=job("", seeds="[0, 1, 2, 3]"), **ONE_CASE))
    assert dead.failure is not None
    # Where Landlock keeps signals in, it is refused.
    assert (dead.failure.kind, dead.failure.error) in (("killed", "SIGKILL"), ("exception", "PluginError"))
    assert [found.status for found in others] == ["finished"] * 3


@pytest.mark.slow
def test_a_case_under_two_names_does_not_run_beside_itself(tmp_path: Path) -> None:
    seen: list[str] = []

    class Noting(Listener):
        def started(self, case: object) -> None:
            seen.append("started")

        def ended(self, case: object, status: object, failure: object) -> None:
            seen.append(f"ended {status}")

    path = write_job(tmp_path, job="seeds: [0]\njobs: 2", algorithms=("one", "two"), **ONE_CASE)
    assert len({found.case.id for found in ianvs.run(path, listener=Noting())}) == 1
    assert seen == ["started", "ended finished"] * (len(seen) // 2)


def test_an_exception_is_not_tried_again(tmp_path: Path) -> None:
    tries = notes(tmp_path) / "tries"
    plugin = doing(f"print('x', file=open({str(tries)!r}, 'a'), flush=True); raise ValueError")
    ianvs.run(write_job(tmp_path, plugin=plugin, job=job(""), hyperparameters="- bias: {values: [0]}"))
    assert tries.read_text().count("x") == 1


@pytest.mark.slow
def test_fail_fast_stops_at_the_first_failure_and_keep_going_does_not(tmp_path: Path) -> None:
    seeds = "[0, 1, 2, 3, 4, 5]"
    plugin = doing("raise ValueError")
    for fast, finished in ((False, 5), (True, 0)):
        where = tmp_path / str(fast)
        extra = f"engine: inline\nfail_fast: {str(fast).lower()}"
        results = ianvs.run(write_job(where, plugin=plugin, job=f"seeds: {seeds}\n{extra}", **ONE_CASE))
        assert results.exit_code == 1
        assert sum(found.status == "finished" for found in results) == finished


@pytest.mark.slow
def test_nothing_of_a_case_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, temporary = notes(tmp_path) / "left", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    mess = f"""\
import subprocess, sys, tempfile
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
file = tempfile.NamedTemporaryFile(delete=False)
print(child.pid, file.name, file=open({str(left)!r}, "w"), flush=True)"""
    ianvs.run(write_job(tmp_path, plugin=doing(mess), job=job(""), **ONE_CASE))
    pid, file = left.read_text().split()
    assert not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
    assert not Path(file).exists()
    assert not list(temporary.iterdir())
    assert not list((tmp_path / "ws" / "cases").glob("*/rounds/.*"))


def test_when_the_supervisor_is_killed_its_cases_end_too(tmp_path: Path) -> None:
    started = notes(tmp_path) / "started"
    plugin = doing(
        f"import os, time; print(os.getpid(), file=open({str(started)!r}, 'w'), flush=True); time.sleep(3600)"
    )
    path = write_job(tmp_path, plugin=plugin, job=job(""), **ONE_CASE)
    process = subprocess.Popen([sys.executable, "-m", "ianvs", "-f", str(path)], stderr=subprocess.DEVNULL)
    wait_for(lambda: started.exists() and started.read_text().strip())
    process.kill()
    process.wait()
    pid = int(started.read_text())
    wait_for(lambda: not psutil.pid_exists(pid))


def test_half_written_rounds_of_a_killed_case_are_removed(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]\nengine: inline", **ONE_CASE)
    [found] = ianvs.run(path)
    split_rounds(tmp_path / "ws")
    (found.directory / "rounds" / ".3.abc").mkdir()
    (found.directory / "rounds" / "5" / "round.json").write_text('{"index": 5,')
    [again] = ianvs.run(path)
    assert (again.status, len(again.rounds)) == ("finished", 6)
    assert not list(found.directory.glob("rounds/.*"))


@pytest.mark.slow
def test_a_half_written_model_starts_the_case_over_with_a_word_in_the_log(tmp_path: Path) -> None:
    path = write_job(tmp_path, job="seeds: [0]\nengine: local", **ONE_CASE)
    [found] = ianvs.run(path)
    values = found.matrices["accuracy"].values.tolist()
    split_rounds(tmp_path / "ws")
    shutil.rmtree(found.directory / "rounds" / "5")
    model = found.directory / "rounds" / "4" / "model"
    model.mkdir()
    (model / "model.txt").write_text("{0: 1, 1:")
    told = Warned()
    [again] = ianvs.run(path, listener=told)
    assert again.matrices["accuracy"].values.tolist() == values
    [said] = told.said
    assert said in (found.directory / "log.txt").read_text()
    assert "after round 4" in said
    assert "from round 1" in said


class Warned(Listener):
    def __init__(self) -> None:
        self.said: list[str] = []

    def warned(self, case: PlannedCase, said: str) -> None:
        self.said.append(said)


def waiting(folder: Path) -> str:
    """Code of a plugin: what `meanwhile` does happens while it runs, once."""
    begun, done = notes(folder) / "begun", notes(folder) / "done"
    return f"""\
import pathlib, time
if pathlib.Path({str(notes(folder) / "armed")!r}).exists():
    pathlib.Path({str(begun)!r}).touch()
    while not pathlib.Path({str(done)!r}).exists():
        time.sleep(0.01)"""


@contextlib.contextmanager
def meanwhile(folder: Path, action: Callable[[], None]) -> Iterator[None]:
    (notes(folder) / "armed").touch()

    def act() -> None:
        while not (notes(folder) / "begun").exists():
            time.sleep(0.01)
        action()
        (notes(folder) / "done").touch()

    threading.Thread(target=act, daemon=True).start()
    yield


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of two megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small file system here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_told_and_finished_cases_survive(tmp_path: Path, small_disk: Path) -> None:
    waits = doing(waiting(tmp_path))
    path = write_job(tmp_path, plugin=waits, job=job("", seeds="[1, 0, 2, 3]"), **ONE_CASE)
    first = write_job(tmp_path / "first", plugin=waits, job=job("", seeds="[1]"), **ONE_CASE)
    [survivor] = ianvs.run(first, workspace=small_disk)

    def fill() -> None:
        with contextlib.suppress(OSError), (small_disk / "fill").open("wb", buffering=0) as file:
            while file.write(bytes(10_000)):
                pass

    command = [sys.executable, "-m", "ianvs", "-f", str(path), "--workspace", str(small_disk), "--jobs", "1"]
    with meanwhile(tmp_path, fill):
        ended = subprocess.run(command, capture_output=True, text=True)
    assert "Traceback" not in ended.stderr
    assert f"{small_disk} " in ended.stderr
    assert "seed 0: failed" in ended.stderr
    assert "seed 2" not in ended.stderr
    assert ended.returncode == 2
    assert ianvs.load_results(small_disk).case_list[0].id == survivor.case.id
    (small_disk / "fill").unlink()
    again = ianvs.run(first, workspace=small_disk)
    assert (again.ran, next(iter(again)).status) == (0, "finished")


@pytest.mark.slow
def test_a_model_that_does_not_fit_on_the_disk_stops_the_run(tmp_path: Path, small_disk: Path) -> None:
    large = edited(MAJORITY, ".write_text(repr(self.counts))", ".write_bytes(bytes(5_000_000))")
    plugin = edited(large, "def save(self, path):", "def save(self, path):\n        if not self.counts: return None")
    path = write_job(tmp_path, plugin=plugin, job="seeds: [0, 1, 2]\njobs: 1", **ONE_CASE)
    assert errors_of(ianvs.run, path, workspace=small_disk) == [("unwritable-file", "")]
    assert [case.state for case in ianvs.plan(path, workspace=small_disk)] == ["failed", "new", "new"]


@pytest.mark.parametrize("engine", ["inline", slow("local")])
def test_a_plugin_that_can_not_write_its_own_file_stops_no_other_case(tmp_path: Path, engine: str) -> None:
    own = doing("import errno; raise OSError(errno.EACCES, 'no', '/proc/own')")
    path = write_job(tmp_path, plugin=own, job=f"seeds: [0, 1]\nengine: {engine}", **ONE_CASE)
    failed, other = ianvs.run(path)
    assert failed.failure is not None
    assert "/proc/own" in failed.failure.message
    assert other.status == "finished"


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["ws", "ws/cases", "ws/cache", "ws/exams"])
def test_a_workspace_that_is_removed_in_the_middle_is_told_and_the_next_run_makes_up_for_it(
    tmp_path: Path, gone: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write_job(tmp_path, plugin=doing(waiting(tmp_path)), job="seeds: [0, 1]\njobs: 1", **ONE_CASE)
    with meanwhile(tmp_path, lambda: shutil.rmtree(tmp_path / gone)):
        for found in ianvs.run(path):
            if found.failure is not None:
                assert found.failure.kind != "killed"
                assert str(tmp_path / "ws") in found.failure.message
    assert [found.status for found in ianvs.run(path)] == ["finished", "finished"]
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("odd", ["import os; os.umask(0o777)", "import time; time.time = lambda: 0.0"])
def test_a_plugin_that_changes_the_umask_or_the_clock_loses_nothing(tmp_path: Path, odd: str) -> None:
    results = ianvs.run(write_job(tmp_path, plugin=doing(odd), job=job(""), **ONE_CASE))
    assert [found.status for found in results] == ["finished", "finished"]
    files = [*(tmp_path / "ws" / "cases").rglob("*")]
    assert not [path for path in files if not path.stat().st_mode & 0o400]


def test_a_workspace_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert errors_of(ianvs.run, write_job(tmp_path), workspace=tmp_path / "file" / "ws") == [("unwritable-file", "")]


def test_slots_spread_cases_over_the_cards_and_can_be_had_alone() -> None:
    slots = Slots(jobs=8, gpus=(0, 3), per_gpu=2)
    taken = [slots.take() for _ in range(5)]
    assert taken == [Slot(0), Slot(3), Slot(0), Slot(3), None]
    assert slots.take(alone=True) is None
    for slot in taken[:1]:
        assert slot is not None
        slots.give(slot)
    assert slots.take(alone=True) is None
    slots.give(Slot(0))
    assert slots.take(alone=True) == Slot(0, alone=True)
    assert slots.take() is None
    slots.give(Slot(0, alone=True))
    assert slots.take() == Slot(0)


def test_slots_without_cards_are_as_many_as_jobs() -> None:
    slots = Slots(jobs=2)
    assert [slots.take(), slots.take(), slots.take()] == [Slot(), Slot(), None]


def test_the_cards_that_are_visible_are_found_without_starting_cuda(tmp_path: Path) -> None:
    (tmp_path / "0000:01").mkdir()
    (tmp_path / "0000:02").mkdir()
    assert visible_gpus({}, tmp_path) == (0, 1)
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "2, 5"}, tmp_path) == (2, 5)
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == ()
    assert visible_gpus({}, tmp_path / "nowhere") == ()


@pytest.mark.slow
def test_a_case_sees_only_its_card_before_anything_is_imported(tmp_path: Path) -> None:
    seen = notes(tmp_path) / "seen"
    plugin = "import torch, os\n" + doing(f"print(os.environ['CUDA_VISIBLE_DEVICES'], file=open({str(seen)!r}, 'w'))")
    ianvs.run(write_job(tmp_path, plugin=plugin, job=job("gpus: [3]", seeds="[0]"), **ONE_CASE))
    assert seen.read_text().strip() == "3"


@pytest.mark.slow
def test_out_of_memory_on_a_shared_card_is_tried_alone_on_it(tmp_path: Path) -> None:
    others = notes(tmp_path) / "others"
    tight = f"""\
open({str(others)!r}, "a").write("try ")
if len(open({str(others)!r}).read().split()) == 1:
    raise type("OutOfMemoryError", (RuntimeError,), {{}})("CUDA out of memory")"""
    plugin = "import torch\n" + doing(tight)
    results = ianvs.run(write_job(tmp_path, plugin=plugin, job=job("gpus: [0]\ncases_per_gpu: 2"), **ONE_CASE))
    assert [found.status for found in results] == ["finished", "finished"]
    assert others.read_text().split() == ["try", "try"]
