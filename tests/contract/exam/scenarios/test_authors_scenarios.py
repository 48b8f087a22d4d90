"""Scenarios that are one file of an author."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.config import load_job
from ianvs.config.spec import ScenarioSpec
from ianvs.exam.scenarios import build_exam, check_scenario
from ianvs.processes.engines.ray.ray_files import gather_code, relocate
from ianvs.running.scheduler.create_engine import authors_files
from tests.documents import python_of
from tests.edits import edited
from tests.jobs import write_job
from tests.packages import install
from tests.unit.exam.scenarios.small_datasets import dataset_of, texts

DOCUMENTED = python_of("extending.md", "A scenario")


def job(folder: Path, scenario: str, code: str = DOCUMENTED, name: str = "ByBrightness", **settings: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(code)
    exam = f"dataset: {{name: digits}}\nscenario: {{name: {name}, url: ./mine.py{scenario}}}\nmetrics: [accuracy, BWT]"
    return write_job(folder, testenv=exam, hyperparameters="", **{"job": "seeds: [0]", **settings})


def refusals(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        ianvs.validate(path)
    return [re.sub(r"^.*testenv\.yaml:", "", str(problem)) for problem in caught.value.problems]


@pytest.mark.slow
def test_the_documented_scenario_runs_in_a_job_and_never_in_the_supervisor(tmp_path: Path) -> None:
    assert len(DOCUMENTED.splitlines()) < 60
    elsewhere = f"import os\nassert os.getpid() != {os.getpid()}, 'this is the process that supervises'\n"
    path = job(tmp_path, ", rounds: 4, darkest_first: false", elsewhere + DOCUMENTED, engine="local")
    ianvs.validate(path)
    [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    assert found.matrices["accuracy"].values.shape == (5, 4)


def test_the_documented_scenario_goes_from_dark_to_bright(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DOCUMENTED)
    dataset = dataset_of(range(8), range(8), shape=(4, 4, 1))
    spec = ScenarioSpec("ByBrightness", {"rounds": 4, "tested_on": 1}, tmp_path / "mine.py")
    exam = build_exam(dataset, spec)
    light = [dataset.train.x[round_.train].mean() for round_ in exam.rounds]
    assert light == sorted(light)
    assert sorted(np.concatenate([round_.train for round_ in exam.rounds])) == list(range(8))
    assert [len(test.test) for test in exam.tests] == [1] * 4
    with pytest.raises(ConfigError, match="has no brightness"):
        build_exam(texts(), spec)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ", rounds: 4, darkest: true",
            "3:61: ByBrightness has no option 'darkest'. Did you mean 'darkest_first'? "
            "It takes: darkest_first, modifiers, rounds, tested_on.",
        ),
        (
            ", rounds: 4, tested_on: 0",
            "3:61: 'tested_on' of ByBrightness should be greater than or equal to 1, found 0.",
        ),
        ("", "3:20: say how many `rounds` there are."),
        (", rounds: 4, modifiers: {few_shots: 3}", "3:61: modifiers has no option 'few_shots'."),
    ],
)
def test_validate_tells_what_is_wrong_with_options(tmp_path: Path, options: str, expected: str) -> None:
    [problem] = refusals(job(tmp_path, options))
    assert problem.startswith(expected)


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("ByBrightnes", DOCUMENTED, "mine.py has no 'ByBrightnes'. Did you mean 'ByBrightness'?"),
        ("ByBrightness", edited(DOCUMENTED, "import numpy", "import nompy"), "mine.py:5: ModuleNotFoundError"),
        ("np", DOCUMENTED, "'np' is no subclass of ianvs.exam.scenarios.Scenario."),
        (
            "ByBrightness",
            edited(DOCUMENTED, "np.argsort", "np.argsorts"),
            "mine.py:38: AttributeError: module 'numpy' has no attribute 'argsorts'",
        ),
        (
            "ByBrightness",
            edited(DOCUMENTED, "return Exam(", "print("),
            "build() gives NoneType, not an ianvs.",
        ),
        (
            "ByBrightness",
            edited(DOCUMENTED, "part[: self.tested_on], classes", "part + 1, classes"),
            "what ByBrightness builds is no exam: round",
        ),
    ],
)
def test_validate_tells_what_is_wrong_with_the_code(tmp_path: Path, name: str, code: str, expected: str) -> None:
    [problem] = refusals(job(tmp_path, ", rounds: 4", code, name))
    assert expected in problem


def test_a_file_that_is_not_there_is_told_with_its_place(tmp_path: Path) -> None:
    path = job(tmp_path, ", rounds: 4")
    (tmp_path / "mine.py").unlink()
    with pytest.raises(ConfigError, match=r"testenv\.yaml:3:39: there is no file '\./mine\.py'"):
        load_job(path)


def test_a_name_that_nobody_has_is_told_with_the_remedy() -> None:
    [problem] = check_scenario(ScenarioSpec("by-brightness"))
    assert "There are: blurred-boundary" in problem.message
    assert problem.message.endswith("One of your own needs the `url` of its file.")


def test_a_scenario_travels_to_nodes_with_what_it_imports(tmp_path: Path) -> None:
    code = edited(DOCUMENTED, "import numpy as np", "import numpy as np\nimport beside")
    loaded = load_job(job(tmp_path / "home", ", rounds: 4", code))
    (tmp_path / "home" / "beside.py").write_text("")
    places = gather_code(authors_files(loaded), tmp_path / "sent")
    moved = relocate(loaded.testenvs[0], {path: tmp_path / "sent" / name for path, name in places.items()})
    assert moved.scenario is not None
    (tmp_path / "home").rename(tmp_path / "gone")
    assert len(build_exam(dataset_of(range(8), range(8), shape=(4, 4, 1)), moved.scenario).rounds) == 4


def test_a_scenario_that_is_installed_needs_no_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = "mine = of_brightness:ByBrightness\nbroken = tomorrow:Mine\nclass-incremental = tomorrow:CIL\n"
    install(tmp_path, monkeypatch, "of_brightness", DOCUMENTED, f"[ianvs.scenarios]\n{points}")
    spec = ScenarioSpec("mine", {"rounds": 2})
    assert check_scenario(replace(spec, options={"anything": 1})) == [], "its code is not asked here"
    dataset = dataset_of(range(8), range(8), shape=(4, 4, 1))
    assert len(build_exam(dataset, spec).rounds) == 2
    assert len(build_exam(dataset, ScenarioSpec("CIL", {"rounds": 2})).rounds) == 2, "ours keep their names"
    with pytest.raises(ConfigError, match="the installed scenario 'broken', tomorrow:Mine, can't be imported"):
        build_exam(dataset, ScenarioSpec("broken"))
    [problem] = check_scenario(ScenarioSpec("mien"))
    assert "Did you mean 'mine'?" in problem.message
