"""One process computes the scores of all cases; what becomes of a case when that process fails."""

from __future__ import annotations

import signal
from pathlib import Path
from textwrap import indent

import psutil
import pytest

import ianvs
from ianvs.base.types import CaseResult
from tests.contract.running.session.test_cases import noted, start
from tests.edits import edited
from tests.errors import printed
from tests.jobs import TESTENV, write_job
from tests.marks import slow
from tests.waiting import wait_for

WITH_OWN = edited(TESTENV, "{name: BWT}", "{name: BWT}, {name: own, url: ./own.py}")


def job(folder: Path, what: str = "pass", extra: str = "", answers: str = "[0, 1, 2]") -> Path:
    """Cases that always answer the same, and a metric that does `what` in the process that scores who answers 0."""
    plugin = f"""\
class Constant:
    def __init__(self, answer=0):
        self.answer = answer

    def train(self, train_data, *, round):
        with open({str(noted(folder))!r}, "a") as file:
            print(self.answer, round, file=file)

    def predict(self, data):
        return [self.answer] * len(data)

    def save(self, path):
        path.write_text("")

    def load(self, path): ...
"""
    (folder / "own.py").write_text(f"""\
import os


def own(y_true, y_pred):
    if len(y_pred) <= 16:
        return 1.0  # it is tried before the run
    with open({str(folder / "scored")!r}, "a") as file:
        print(os.getpid(), file=file)
    if y_pred[0] == 0:
{indent(what, 8 * " ")}
    return 1.0
""")
    return write_job(
        folder,
        plugin=plugin,
        name="Constant",
        testenv=WITH_OWN,
        hyperparameters=f"- answer: {{values: {answers}}}",
        job=f"seeds: [0]\njobs: 2\n{extra}",
        engine="local",
    )


def scoring(folder: Path) -> list[int]:
    """The processes that have called the metric, in the order in which they began."""
    file = folder / "scored"
    return [*dict.fromkeys(map(int, file.read_text().split()))] if file.exists() else []


def only_the_first_failed(path: Path) -> CaseResult:
    first, *others = ianvs.run(path)
    assert [found.status for found in (first, *others)] == ["failed", "finished", "finished"]
    return first


def without_own(folder: Path) -> str:
    return edited((folder / "testenv.yaml").read_text(), ", {name: own, url: ./own.py}", "")


def trained(folder: Path) -> int:
    return len(noted(folder).read_text().splitlines())


def test_one_process_that_has_imported_no_plugin_scores_all_cases(tmp_path: Path) -> None:
    path = job(tmp_path, "import sys; print([name for name in sys.modules if name.endswith('_plugin')], 'are plugins')")
    results = ianvs.run(path)
    assert {found.status for found in results} == {"finished"}
    assert len(scoring(tmp_path)) == 1
    logs = [log.read_text() for log in tmp_path.glob("ws/cases/*/log.txt")]
    [log] = [text for text in logs if "are plugins" in text]
    assert "[] are plugins" in log


@pytest.mark.parametrize(
    ("dying", "kind", "error"),
    [
        ("os._exit(3)", "exception", "exit status 3"),
        slow("os.kill(os.getpid(), 9)", "killed", "SIGKILL"),
        slow("import ctypes; ctypes.string_at(0)", "killed", "SIGSEGV"),
    ],
)
def test_a_scorer_that_dies_fails_its_case_alone(tmp_path: Path, dying: str, kind: str, error: str) -> None:
    path = job(tmp_path, f"print('before the end', flush=True); {dying}", "retries: 0")
    failure = only_the_first_failed(path).failure
    assert failure is not None and failure.log is not None
    assert (failure.kind, failure.error) == (kind, error)
    printed(failure.message)
    assert "before the end" in failure.log.read_text()
    assert len(scoring(tmp_path)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("what", ["raise MemoryError", "raise SystemExit(4)"])
def test_a_metric_that_gives_up_fails_its_case_and_the_scorer_goes_on(tmp_path: Path, what: str) -> None:
    failure = only_the_first_failed(job(tmp_path, what)).failure
    assert failure is not None
    assert "own" in failure.message
    assert len(scoring(tmp_path)) == 1


@pytest.mark.slow
def test_a_scorer_over_the_memory_of_a_case_is_ended_with_the_limit_named(tmp_path: Path) -> None:
    eat = "import numpy, time; x = numpy.ones(100_000_000); time.sleep(3600)"
    failure = only_the_first_failed(job(tmp_path, eat, "limits: {memory_mb: 500}")).failure
    assert failure is not None
    assert (failure.kind, failure.error) == ("memory", "MemoryError")


def test_a_metric_that_hangs_is_ended_and_the_next_run_scores_what_was_answered(tmp_path: Path) -> None:
    path = job(tmp_path, "import time; time.sleep(3600)", "limits: {case_seconds: 10, grace_seconds: 0.2}")
    failure = only_the_first_failed(path).failure
    assert failure is not None
    assert failure.kind == "timeout"
    printed(failure.message)
    before = trained(tmp_path)
    [first, *_] = ianvs.run(job(tmp_path), engine="inline")
    assert (first.status, trained(tmp_path)) == ("finished", before)


@pytest.mark.slow
def test_a_scorer_that_is_killed_once_is_tried_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    once = f"os.path.exists({str(flag)!r}) or (open({str(flag)!r}, 'w').close(), os.kill(os.getpid(), 9))"
    results = ianvs.run(job(tmp_path, once))
    assert {found.status for found in results} == {"finished"}
    assert trained(tmp_path) == 15


@pytest.mark.slow
def test_a_metric_that_kills_the_process_above_it_fails_alone(tmp_path: Path) -> None:
    path = job(tmp_path, "import time; os.kill(os.getppid(), 9); time.sleep(3600)", "retries: 0", "[0, 1, 2, 3]")
    dead, *others = ianvs.run(path)
    assert dead.failure is not None
    assert (dead.failure.kind, dead.failure.error) == ("killed", "SIGKILL")
    # One that answered meanwhile may have been lost with the process from which all are forked.
    assert [found.status for found in ianvs.run(job(tmp_path, answers="[0, 1, 2, 3]"))] == ["finished"] * 4
    assert others


@pytest.mark.slow
def test_a_plugin_that_kills_the_process_above_it_costs_no_other_case_its_scores(tmp_path: Path) -> None:
    mark = f"os.path.exists({str(tmp_path / 'mark')!r})"
    first_time = f"{mark} or (open({str(tmp_path / 'mark')!r}, 'w').close(), __import__('time').sleep(3600))"
    path, plugin = job(tmp_path, first_time, "retries: 0", "[0, 3, 1, 2]"), tmp_path / "plugin.py"
    kills = f"""\
        import os, time
        while self.answer == 3:
            time.sleep(0.01)
            if {mark}:
                os.kill(os.getppid(), 9)
        with open("""
    plugin.write_text(edited(plugin.read_text(), "        with open(", kills))
    scored, dead, *others = ianvs.run(path)
    assert dead.failure is not None
    assert (dead.failure.kind, dead.failure.error) == ("killed", "SIGKILL")
    assert [found.status for found in (scored, *others)] == ["finished"] * 3


def test_a_metric_that_is_added_later_is_computed_by_the_scorer_and_no_case_runs(tmp_path: Path) -> None:
    path = job(tmp_path)
    (tmp_path / "testenv.yaml").write_text(without_own(tmp_path))
    ianvs.run(path, engine="inline")
    before, plugin = trained(tmp_path), (tmp_path / "plugin.py").read_text()
    path = job(tmp_path)
    assert (tmp_path / "plugin.py").read_text() == plugin
    results = ianvs.run(path)
    assert [found.metrics["own"] for found in results] == [1.0] * 3
    assert len(scoring(tmp_path)) == 1
    assert trained(tmp_path) == before


def test_answers_that_were_damaged_are_made_again_before_they_are_scored(tmp_path: Path) -> None:
    path = job(tmp_path, answers="[1]")
    (tmp_path / "testenv.yaml").write_text(without_own(tmp_path))
    [found] = ianvs.run(path, engine="inline")
    before, answers = trained(tmp_path), tmp_path / "ws" / "cases" / found.case.id / "predictions.zip"
    content = bytearray(answers.read_bytes())
    content[len(content) // 2] ^= 255
    answers.write_bytes(content)
    [again] = ianvs.run(job(tmp_path, answers="[1]"))
    assert (again.status, again.metrics["own"]) == ("finished", 1.0)
    assert trained(tmp_path) > before


@pytest.mark.slow
def test_ctrl_c_leaves_no_process_while_a_case_is_scored(tmp_path: Path) -> None:
    path = job(tmp_path, "import time; time.sleep(3600)", answers="[0]")
    process = start(path)
    wait_for(lambda: bool(scoring(tmp_path)))
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while not process.stderr.readline().startswith("stopping"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    [scorer] = scoring(tmp_path)
    wait_for(lambda: not psutil.pid_exists(scorer))
    assert trained(tmp_path) == 5
    [found] = ianvs.run(job(tmp_path, answers="[0]"), engine="inline")
    assert (found.status, trained(tmp_path)) == ("finished", 5)
