"""Engines by name and by file: what is told before one is opened, and what it is opened with."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.cli import main
from ianvs.config import load_job
from ianvs.processes.engines import InlineEngine, LocalEngine, Workload
from ianvs.running.scheduler.create_engine import authors_files, engine_problems, open_checker, open_engine
from tests.edits import edited
from tests.errors import Found, errors_of, recorded
from tests.jobs import MAJORITY, TESTENV, write_job

SLOW_START = """\
from ianvs.processes.engines import LocalEngine, Workload
class Patient(LocalEngine):
    elsewhere = True  # such an engine is given what authors have written
    def __init__(self, workload: Workload, *, seconds: float, loud: bool = False):
        super().__init__(workload)
        self.opened_with = workload, seconds

class Broken(LocalEngine):
    def __init__(self, workload: Workload):
        raise OSError("no cluster here")

def plain(workload): ...
"""


def job(folder: Path, engine: str, extra: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(SLOW_START)
    return write_job(folder, hyperparameters="", job=f"engine: {engine}\n{extra}")


def problems(folder: Path, engine: str) -> list[Found]:
    """Code and position in the job file of each."""
    path = job(folder, engine)
    errors = recorded(engine_problems(load_job(path)))
    return [(code, location.removeprefix(f"{path}:")) for code, location in errors]


def test_an_unknown_engine_is_told_with_its_place_and_the_names_that_there_are(tmp_path: Path) -> None:
    assert problems(tmp_path, "locl") == [("invalid-engine", "5:11")]
    assert problems(tmp_path, "{name: rey}") == [("invalid-engine", "5:18")]


def test_run_validate_and_the_command_line_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = job(tmp_path, "local")
    assert errors_of(ianvs.run, path, engine="rey") == [("invalid-engine", "")]
    assert main(["validate", "-f", str(path), "--engine", "rey"]) == 2
    assert "'ray'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("{name: local, cores: 2}", ("unknown-option", "5:25")),
        (
            "{name: ray, gpu_shares: 0.5}",
            ("unknown-option", "5:23"),
        ),
        (
            "{name: ray, gpu_share: half}",
            ("wrong-type", "5:23"),
        ),
        (
            "{name: Patient, url: ./mine.py}",
            ("missing-option", "5:18"),
        ),
        (
            "{name: Patient, url: ./mine.py, seconds: 1, loud: maybe}",
            ("wrong-type", "5:55"),
        ),
        ("{name: plain, url: ./mine.py}", ("invalid-engine", "5:18")),
    ],
)
def test_options_are_held_against_the_engine(tmp_path: Path, engine: str, expected: Found) -> None:
    assert problems(tmp_path, engine) == [expected]


def test_a_name_that_the_file_does_not_have_is_told(tmp_path: Path) -> None:
    assert problems(tmp_path, "{name: Patent, url: ./mine.py, seconds: 1}") == [("invalid-engine", "5:18")]


def test_an_engine_is_opened_with_what_the_job_says(tmp_path: Path) -> None:
    path = job(tmp_path, "{name: Patient, url: ./mine.py, seconds: 1.5}", "jobs: 2\nthreads: 3\ndevice: cpu")
    engine = open_engine(load_job(path), tasks=7)
    workload, seconds = engine.opened_with  # type: ignore[attr-defined]
    engine.close()
    assert seconds == 1.5
    assert (workload.jobs, workload.tasks, workload.threads, workload.device) == (2, 7, 3, "cpu")
    assert "ianvs.running.session.case" in workload.preload
    assert set(workload.code) == {tmp_path / "plugin.py", tmp_path / "mine.py"}


def test_an_engine_that_can_not_be_opened_is_told_with_its_line(tmp_path: Path) -> None:
    path = job(tmp_path, "{name: Broken, url: ./mine.py}")
    assert errors_of(ianvs.run, path) == [("invalid-engine", "")]


def test_exams_are_built_in_another_process_unless_everything_is_to_happen_in_this_one(tmp_path: Path) -> None:
    for engine, kind in (("inline", InlineEngine), ("local", LocalEngine)):
        checker = open_checker(load_job(job(tmp_path, engine)))
        checker.close()
        assert isinstance(checker, kind)


def test_a_local_engine_has_no_more_slots_than_tasks() -> None:
    for jobs, tasks in ((None, 1), (2, None)):
        engine = LocalEngine(Workload(jobs=jobs, tasks=tasks))
        engine.close()
        assert engine.slots == (tasks or jobs or engine.slots)


def test_everything_that_an_author_has_written_is_known(tmp_path: Path) -> None:
    (tmp_path / "metric.py").write_text("def mine(y_true, y_pred): return 1")
    (tmp_path / "exam.json").write_text("{}")
    exam = edited(TESTENV, "{name: BWT}", "{name: mine, url: ./metric.py}")
    exam = edited(exam, "{name: class-incremental, rounds: 5}", "{name: manifest, file: ./exam.json}")
    path = write_job(tmp_path, plugin=MAJORITY, testenv=exam)
    found = authors_files(load_job(path))
    assert {file.name for file in found} == {"plugin.py", "metric.py", "exam.json"}
