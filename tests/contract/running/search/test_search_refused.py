"""What is refused before anything is tried, and in the same words by validate, plan and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from tests.contract.running.search.searched_job import searched_job
from tests.edits import edited
from tests.errors import errors_of, printed, recorded

RANGE = "- noise: {uniform: [0.0, 0.9]}"
REFUSED = {
    "unknown way": ("{name: asah}", RANGE, "invalid-choice"),
    "no way": ("{trials: 3}", RANGE, "missing-key"),
    "unknown key": ("{name: tpe, trails: 3}", RANGE, "unknown-key"),
    "no trials": ("{name: tpe, trials: 0}", RANGE, "out-of-range"),
    "first rung": ("{name: asha, first_rung: 1}", RANGE, "out-of-range"),
    "of asha": ("{name: tpe, reduction: 2}", RANGE, "conflicting-keys"),
    "one round": ("{name: tpe, select: {by: first_rounds, rounds: 1}}", RANGE, "out-of-range"),
    "rounds left out": ("{name: tpe, select: {by: first_rounds}}", RANGE, "missing-key"),
    "other exam": ("{name: tpe, select: {by: exam, exam: a}}", RANGE, "invalid-choice"),
    "one seed": ("{name: tpe, select: {by: seeds}}", RANGE, "invalid-selection"),
    "metric": ("{name: tpe, metric: acuracy}", RANGE, "unknown-column"),
    "cost": ("{name: tpe, metric: train_seconds}", RANGE, "invalid-search"),
    "references": ("{name: tpe, metric: IM}", RANGE, "invalid-search"),
    "samples of a formula": ("{name: tpe, metric: BWT, select: {by: validation}}", RANGE, "invalid-selection"),
    "no range": ("{name: tpe}", "- noise: {values: [0.1, 0.2]}", "invalid-search"),
    "no search": ("", RANGE, "invalid-search"),
    "upside down": ("{name: tpe}", "- noise: {uniform: [0.9, 0.1]}", "out-of-range"),
    "log of nothing": ("{name: tpe}", "- noise: {log_uniform: [0, 0.9]}", "out-of-range"),
    "infinite": ("{name: tpe}", "- noise: {uniform: [0, .inf]}", "out-of-range"),
    "half a number": ("{name: tpe}", "- scale: {int: [1, 2.5]}", "wrong-type"),
    "one end": ("{name: tpe}", "- noise: {uniform: [0.1]}", "wrong-length"),
    "one choice": ("{name: tpe}", "- kind: {choice: [a]}", "wrong-length"),
    "twice": ("{name: tpe}", "- kind: {choice: [a, b, a]}", "duplicate-entry"),
    "two forms": ("{name: tpe}", "- noise: {values: [0], uniform: [0, 1]}", "conflicting-keys"),
    "no form": ("{name: tpe}", "- noise: {}", "empty-value"),
}
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 5}
metrics: [{name: accuracy}, {name: BWT}, {name: IM}, {name: train_seconds}]
"""


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused_with_its_place(tmp_path: Path, what: str) -> None:
    search, hyperparameters, code = REFUSED[what]
    job = searched_job(tmp_path, search, hyperparameters, job="seeds: [0]\nengine: inline", testenv=TESTENV)
    with pytest.raises(ConfigError) as caught:
        ianvs.plan(job)
    assert code in [found for found, _ in recorded(caught.value.problems)]
    assert all(error.location is not None and error.location.line > 1 for error in caught.value.problems)
    assert not (tmp_path / "ws" / "cases").exists()


def test_rank_select_stands_below_search(tmp_path: Path) -> None:
    job = searched_job(tmp_path, "{name: tpe}", sort_by="[{accuracy: descend}]\n    select: {by: validation}")
    assert [code for code, _ in errors_of(ianvs.plan, job)] == ["conflicting-keys"]


def test_only_and_limit_are_refused(tmp_path: Path) -> None:
    for more in ({"only": "seed=0"}, {"limit": 1}):
        found = errors_of(ianvs.run, searched_job(tmp_path, "{name: tpe}"), **more)
        assert [code for code, _ in found] == ["conflicting-keys"]


def test_a_reference_has_no_range(tmp_path: Path) -> None:
    job = searched_job(tmp_path, "{name: tpe}", job="engine: inline\nreferences: {joint: majority}", testenv=TESTENV)
    assert "invalid-reference-run" in [code for code, _ in errors_of(ianvs.plan, job)]


@pytest.mark.parametrize("call", [ianvs.validate, ianvs.run, ianvs.plan])
def test_without_optuna_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[Path], object]
) -> None:
    monkeypatch.setattr("ianvs.running.scheduler.column_checks.find_spec", lambda name: None)
    found = errors_of(call, searched_job(tmp_path, "{name: tpe, trials: 1}"))
    assert [code for code, _ in found] == ["missing-package"]


def test_validate_and_run_refuse_what_the_constructor_and_the_exam_refuse(tmp_path: Path) -> None:
    job = searched_job(tmp_path, "{name: tpe}", "- noise: {uniform: [0.5, 1.5]}\n- nois: {int: [1, 2]}")
    told = []
    for call in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError) as caught:
            call(job)
        told.append(str(caught.value))
    assert told[0] == told[1] and "nois" in told[0]
    job.with_name("algorithm.yaml").write_text(
        edited(job.with_name("algorithm.yaml").read_text(), "- nois:", "- scale:")
    )
    assert errors_of(ianvs.validate, job) == [("refused-arguments", f"{tmp_path}/algorithm.yaml:8:28")]
    job = searched_job(tmp_path / "rounds", "{name: tpe, select: {by: first_rounds, rounds: 5}}")
    assert errors_of(ianvs.validate, job) == [("invalid-selection", f"{tmp_path}/rounds/benchmarkingjob.yaml:7:58")]
    job = searched_job(tmp_path / "stops", "{name: asha, first_rung: 5}")
    assert recorded(ianvs.validate(job).warnings) == [
        ("doubtful-search", f"{tmp_path}/stops/benchmarkingjob.yaml:7:36")
    ]


def test_a_plan_says_what_a_search_will_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ianvs.cli import main

    job = searched_job(tmp_path, "{name: asha, trials: 7}")
    assert main(["plan", "-f", str(job)]) == 0
    printed(capsys.readouterr().out)
    ianvs.validate(job)
    main(["plan", "-f", str(job)])
    printed(capsys.readouterr().out)


def test_a_value_from_the_command_line_takes_the_place_of_a_range(tmp_path: Path) -> None:
    job = searched_job(tmp_path, "{name: tpe}", "- noise: {uniform: [0, 1]}\n- scale: {int: [1, 3]}")
    (study,) = ianvs.plan(job, settings={"noise": 0.25, "search.trials": 3}).studies
    assert list(study.space) == ["scale"] and study.spec.trials == 3
