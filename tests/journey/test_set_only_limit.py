"""Values and cases that the command line asks for: --set, --only, --limit, --dry-run, and how much is said."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.cli import main
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import MAJORITY, write_job

SECOND = edited(MAJORITY, "class Majority", "class Second", "bias=0", "bias: float = 0, other: int = 1")


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def two(tmp_path: Path) -> Path:
    """A job of `majority`, whose file lists bias, and `second`, whose file lists nothing."""
    job = write_job(tmp_path, plugin=MAJORITY + SECOND, job="seeds: [0, 1]\nengine: inline")
    text = job.read_text()
    listed = "      - {name: majority, url: ./algorithm.yaml}\n"
    assert listed in text
    job.write_text(edited(text, listed, f"{listed}      - {{name: second, url: ./second.yaml}}\n"))
    module = "{type: basemodel, name: Second, url: ./plugin.py}"
    (tmp_path / "second.yaml").write_text(
        f"algorithm:\n  paradigm_type: incrementallearning\n  modules:\n    - {module}\n"
    )
    return job


def cases(job: Path, **asked: object) -> list[tuple[str, dict[str, object], int]]:
    found = [planned.case for planned in ianvs.plan(job, **asked)]  # type: ignore[arg-type]
    return [(case.algorithm, dict(case.hyperparameters), case.seed) for case in found]


def test_a_hyperparameter_is_set_for_all_that_list_it_or_whose_constructor_takes_it(tmp_path: Path) -> None:
    job = two(tmp_path)
    assert cases(job, settings=["bias=3", "seeds=[0]"]) == [("majority", {"bias": 3}, 0), ("second", {"bias": 3}, 0)]
    assert cases(job, settings={"other": 5, "bias": 1, "seeds": [4]}) == [
        ("majority", {"bias": 1}, 4),
        ("second", {"other": 5, "bias": 1}, 4),
    ]


def test_one_of_an_algorithm_by_its_name_and_several_values_are_a_grid(tmp_path: Path) -> None:
    job = two(tmp_path)
    found = cases(job, settings=["second.bias=1", "second.bias=2.5"], only="second,seed=1")
    assert found == [("second", {"bias": 1}, 1), ("second", {"bias": 2.5}, 1)]


def test_what_is_set_is_the_same_case_as_what_is_written(tmp_path: Path) -> None:
    by_set = [one.case.id for one in ianvs.plan(write_job(tmp_path), settings=["bias=7", "scenario.rounds=2"])]
    testenv = (tmp_path / "testenv.yaml").read_text()
    assert "rounds: 5" in testenv
    job = write_job(tmp_path / "other", hyperparameters="- bias: {values: [7]}")
    (tmp_path / "other" / "testenv.yaml").write_text(edited(testenv, "rounds: 5", "rounds: 2"))
    assert [one.case.id for one in ianvs.plan(job)] == by_set


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("bia=1", "unknown-hyperparameter"),
        ("second.bis=1", "unknown-hyperparameter"),
        ("second.bias=much", "wrong-type"),
        ("scenario.round=2", "unknown-option"),
        ("scenari.rounds=2", "invalid-override"),
        ("scenario.rounds=0", "invalid-option"),
        ("seeds=one", "wrong-type"),
        ("threads=0", "out-of-range"),
        ("limits.case_secnds=3", "unknown-key"),
        ("rank.sort_by.accuracy=ascend", "invalid-override"),
        ("metrics=[acuracy]", "unknown-metric"),
        ("bias", "invalid-override"),
        ("bias=[1", "invalid-yaml"),
        ("device=gpu", "invalid-choice"),
    ],
)
def test_a_slip_is_told_with_the_setting_as_its_place(tmp_path: Path, setting: str, code: str) -> None:
    [(found, place), *_] = errors_of(ianvs.validate, two(tmp_path), settings=[setting])
    assert found == code
    assert place.startswith("--set") or setting == "rank.sort_by.accuracy=ascend"


def test_a_key_or_a_value_that_is_set_twice_is_a_slip(tmp_path: Path) -> None:
    assert errors_of(ianvs.plan, two(tmp_path), settings=["seeds=[1]", "seeds=[2]"]) == [
        ("duplicate-entry", "--set seeds=[2]")
    ]
    assert errors_of(ianvs.plan, two(tmp_path), settings=["bias=1", "bias=1.0"]) == [
        ("duplicate-entry", "--set bias=1.0")
    ]


def test_a_section_that_the_file_has_not_is_made(tmp_path: Path) -> None:
    job = ianvs.validate(two(tmp_path), settings=["limits.case_seconds=30", "budget.memory_samples=5"])
    assert job.limits.case_seconds == 30
    assert job.testenvs[0].budget is not None
    assert job.testenvs[0].budget.memory_samples == 5


def test_the_record_of_a_run_says_what_was_set(tmp_path: Path) -> None:
    results = ianvs.run(two(tmp_path), settings=["bias=2", "scenario.rounds=2"], only="second,seed=0")
    assert results.exit_code == 0
    assert results.provenance["configuration"]["set"] == {"bias": 2, "scenario.rounds": 2}  # type: ignore[index]
    [found] = results
    assert len(found.round_names) == 2
    frame = results.leaderboard_frame
    assert frame["Status"].tolist() == ["finished"]
    assert frame["accuracy"].notna().all()


def test_only_and_limit_take_some_of_the_cases_and_say_when_there_are_none(tmp_path: Path) -> None:
    job = two(tmp_path)
    every = cases(job)
    assert cases(job, limit=3) == every[:3]
    assert cases(job, only="seed=1") == [case for case in every if case[2] == 1]
    assert cases(job, only="bias=1e3,seed=0", limit=5) == [("majority", {"bias": 1000}, 0)]
    assert errors_of(cases, job, only="nobody") == [("no-matching-case", "")]


def test_a_grid_of_a_million_is_refused_before_its_cases_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = ", ".join(map(str, range(1000)))
    job = write_job(tmp_path, hyperparameters=f"- bias: {{values: [{many}]}}\n- fail_in_round: {{values: [{many}]}}")
    assert errors_of(ianvs.run, job) == [("too-many-cases", "")]
    assert not (tmp_path / "ws").exists()
    assert main(["run", str(job), "--limit", "2", "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith("2 cases: 2 new\n")


def test_a_dry_run_is_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two(tmp_path)
    assert main(["plan", "--only", "second"]) == 0
    planned = capsys.readouterr().out
    assert main(["--dry-run", "--only", "second"]) == 0
    assert capsys.readouterr().out == planned
    assert "2 cases: 2 new" in planned
    assert not (tmp_path / "ws" / "cases").exists()


def test_quiet_says_nothing_of_how_it_goes_and_verbose_each_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two(tmp_path)
    assert main(["run", "--only", "second,seed=0", "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "second" in shown.out
    assert main(["run", "--only", "second,seed=1", "--verbose", "--set", "engine=local"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert any("second, seed 1" in line for line in lines)
    assert next(line.split(" ", 1)[1] for line in lines if "round 5" in line) == "round 5: train"


def test_an_option_that_a_function_does_not_take_is_refused(tmp_path: Path) -> None:
    path = write_job(tmp_path)
    with pytest.raises(TypeError, match="'workspace'"):
        ianvs.plan(path, worksapce=tmp_path)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'only'"):
        ianvs.validate(path, only="majority")  # type: ignore[call-arg]


def test_several_conditions_are_those_of_one_or_the_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two(tmp_path)
    assert main(["plan", "--only", "second,seed=1", "--only", "seed=0"]) == 0
    assert "4 cases: 4 new" in capsys.readouterr().out
    assert main(["plan", "--only", "second,seed=1; seed=0;"]) == 0
    assert "4 cases: 4 new" in capsys.readouterr().out
    assert main(["plan", "--only", "second", "--only", "sceond"]) == 2
    printed(capsys.readouterr().err)
