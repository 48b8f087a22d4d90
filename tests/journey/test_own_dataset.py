"""A job over a dataset in one Python file."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

import ianvs
from ianvs.base.errors import IanvsError
from ianvs.config import load_job
from ianvs.processes.engines.ray.ray_files import gather_code, relocate
from ianvs.running.scheduler.create_engine import authors_files
from tests.edits import edited
from tests.errors import raised, recorded
from tests.jobs import write_job

EXAM = """
dataset:
  name: mine
  url: ./mine.py
  count: 12
scenario: {name: class-incremental, rounds: 3}
metrics: [accuracy]
"""

MINE = """
import random
from pathlib import Path


def mine(count: int, bias: float = 0.0):
    numbers = [float(line) for line in (Path(__file__).parent / "numbers.txt").read_text().split()]
    part = [[number + bias] for number in numbers * count], [i % 3 for i in range(len(numbers) * count)]
    return {"train": part, "test": part, "classes": ["a", "b", "c"]}
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "numbers.txt").write_text("1 2 3")
    return write_job(tmp_path, testenv=EXAM, job="seeds: [0]")


def ids(job: Path) -> list[str]:
    return [planned.case.id for planned in ianvs.plan(job)]


def refused(job: Path) -> list[tuple[str, str]]:
    """Code and location of each error that both commands raise."""
    texts = []
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(IanvsError) as caught:
            command(job)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    return recorded(raised(caught.value))


def test_a_job_runs_over_what_a_function_returns_and_repeats_nothing(job: Path) -> None:
    ianvs.validate(job)
    results = ianvs.run(job)
    assert results.exit_code == 0
    assert set(results.leaderboard_frame["Dataset"]) == {"mine"}
    assert [planned.action for planned in ianvs.plan(job)] == ["nothing"] * 2


def test_cases_change_with_the_samples_and_with_nothing_else(job: Path) -> None:
    first = ids(job)
    mine = job.parent / "mine.py"
    mine.write_text(MINE + "# a word\n")
    assert ids(job) == first
    (job.parent / "numbers.txt").write_text("1 2 4")
    assert set(ids(job)).isdisjoint(first)


def test_a_random_function_does_not_make_finished_cases_new(job: Path) -> None:
    (job.parent / "mine.py").write_text(edited(MINE, "number + bias", "number + random.random()"))
    ianvs.run(job)
    assert {planned.state for planned in ianvs.plan(job)} == {"finished"}


@pytest.mark.slow
def test_validate_and_run_refuse_in_the_same_words(job: Path) -> None:
    testenv = job.parent / "testenv.yaml"
    testenv.write_text(edited(testenv.read_text(), "count: 12", "cuont: 12\n    bias: much"))
    assert refused(job) == [
        ("unknown-option", "testenv.yaml:5:5"),
        ("missing-option", "testenv.yaml:3:11"),
        ("invalid-option", "testenv.yaml:6:5"),
    ]
    testenv.write_text(edited(testenv.read_text(), "cuont: 12\n    bias: much", "count: 12"))
    (job.parent / "mine.py").write_text(edited(MINE, '"test": part', '"tests": part'))
    assert refused(job) == [("invalid-result", "mine.py:6:1")]
    (job.parent / "numbers.txt").unlink()
    assert refused(job) == [("failed-plugin", "testenv.yaml:3:11")]


def test_a_file_that_is_not_there_is_told_before_anything_is_called(job: Path) -> None:
    (job.parent / "mine.py").unlink()
    assert refused(job) == [("missing-file", "testenv.yaml:4:10")]


@pytest.mark.slow
def test_limits_bound_the_call(job: Path) -> None:
    job.write_text(edited(job.read_text(), "seeds: [0]", "seeds: [0]\n  limits: {check_seconds: 2}"))
    (job.parent / "mine.py").write_text(dedent("def mine(count):\n    while True: pass\n"))
    assert refused(job) == [("failed-plugin", "testenv.yaml:3:11")]


def test_the_file_travels_to_the_nodes_of_a_cluster(job: Path) -> None:
    (job.parent / "beside.py").write_text("")
    (job.parent / "mine.py").write_text("import beside\n" + MINE)
    spec = load_job(job)
    there = job.parent / "there"
    places = gather_code(authors_files(spec), there)
    moved = relocate(spec.testenvs[0].dataset, {path: there / name for path, name in places.items()})
    assert moved.url is not None
    assert moved.url.is_relative_to(there)
    assert (moved.url.parent / "beside.py").is_file()
