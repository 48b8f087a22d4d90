"""What is refused before anything is tried, and in the same words by validate, plan and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from tests.edits import edited
from tests.running.search.searched_job import searched_job

RANGE = "- noise: {uniform: [0.0, 0.9]}"
REFUSED = {
    "unknown way": ("{name: asah}", RANGE, "name should be one of random, tpe, asha, found the text 'asah'"),
    "no way": ("{trials: 3}", RANGE, "key 'name' is missing in search"),
    "unknown key": ("{name: tpe, trails: 3}", RANGE, "unknown key 'trails' in search. Did you mean 'trials'?"),
    "no trials": ("{name: tpe, trials: 0}", RANGE, "trials should be at least 1, found the number 0"),
    "first rung": ("{name: asha, first_rung: 1}", RANGE, "the first rung is round 2 or later, found 1: after round 1"),
    "of asha": ("{name: tpe, reduction: 2}", RANGE, "'reduction' has no effect: it is of `name: asha`"),
    "one round": (
        "{name: tpe, select: {by: first_rounds, rounds: 1}}",
        RANGE,
        "after round 1 nothing is forgotten yet, so that it tells a search nothing",
    ),
    "rounds left out": ("{name: tpe, select: {by: first_rounds}}", RANGE, "`by: first_rounds` needs the key 'rounds'"),
    "other exam": ("{name: tpe, select: {by: exam, exam: a}}", RANGE, "a search chooses in each exam for itself"),
    "one seed": ("{name: tpe, select: {by: seeds}}", RANGE, "chooses on a half of the seeds, and the job has one"),
    "metric": (
        "{name: tpe, metric: acuracy}",
        RANGE,
        "search goes by 'acuracy', which is not a metric of the testenv.",
    ),
    "cost": ("{name: tpe, metric: train_seconds}", RANGE, "says what a case costs, not what it is worth"),
    "references": ("{name: tpe, metric: IM}", RANGE, "search goes by 'IM', which needs reference runs for every trial"),
    "samples of a formula": (
        "{name: tpe, metric: BWT, select: {by: validation}}",
        RANGE,
        "splits the samples of each test set, and 'BWT' is not a score of samples",
    ),
    "no range": ("{name: tpe}", "- noise: {values: [0.1, 0.2]}", "`search` has nothing to search for"),
    "no search": ("", RANGE, "noise of majority has a range, and the job has no `search`"),
    "upside down": ("{name: tpe}", "- noise: {uniform: [0.9, 0.1]}", "a range begins with its lower end, found 0.9"),
    "log of nothing": ("{name: tpe}", "- noise: {log_uniform: [0, 0.9]}", "log_uniform begins above 0, found 0"),
    "infinite": ("{name: tpe}", "- noise: {uniform: [0, .inf]}", "a range goes from one finite number to another"),
    "half a number": ("{name: tpe}", "- scale: {int: [1, 2.5]}", "should be a whole number, found the number 2.5"),
    "one end": ("{name: tpe}", "- noise: {uniform: [0.1]}", "should have 2 entries, found 1"),
    "one choice": ("{name: tpe}", "- kind: {choice: [a]}", "should have 2 entries, found 1"),
    "twice": ("{name: tpe}", "- kind: {choice: [a, b, a]}", "this value is in the list already"),
    "two forms": ("{name: tpe}", "- noise: {values: [0], uniform: [0, 1]}", "values and uniform are given"),
    "no form": ("{name: tpe}", "- noise: {}", "there are no values"),
}
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 5}
metrics: [{name: accuracy}, {name: BWT}, {name: IM}, {name: train_seconds}]
"""


@pytest.mark.parametrize("what", REFUSED)
def test_is_refused_with_its_place(tmp_path: Path, what: str) -> None:
    search, hyperparameters, said = REFUSED[what]
    job = searched_job(tmp_path, search, hyperparameters, job="seeds: [0]\nengine: inline", testenv=TESTENV)
    with pytest.raises(ConfigError) as caught:
        ianvs.plan(job)
    assert said in str(caught.value), str(caught.value)
    assert all(problem.place is not None and problem.place.line > 1 for problem in caught.value.problems)
    assert not (tmp_path / "ws" / "cases").exists()


def test_rank_select_stands_below_search(tmp_path: Path) -> None:
    job = searched_job(tmp_path, "{name: tpe}", sort_by="[{accuracy: descend}]\n    select: {by: validation}")
    with pytest.raises(ConfigError, match=r"a search chooses, and `rank.select` would choose once more"):
        ianvs.plan(job)


def test_only_and_limit_are_refused(tmp_path: Path) -> None:
    for more in ({"only": "seed=0"}, {"limit": 1}):
        with pytest.raises(ConfigError, match="a search goes by all of its trials"):
            ianvs.run(searched_job(tmp_path, "{name: tpe}"), **more)  # type: ignore[arg-type]


def test_a_reference_has_no_range(tmp_path: Path) -> None:
    job = searched_job(tmp_path, "{name: tpe}", job="engine: inline\nreferences: {joint: majority}", testenv=TESTENV)
    with pytest.raises(ConfigError, match="there has to be one choice, and it has a range"):
        ianvs.plan(job)


@pytest.mark.parametrize("call", [ianvs.validate, ianvs.run, ianvs.plan])
def test_without_optuna_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[Path], object]
) -> None:
    monkeypatch.setattr("ianvs.running.scheduler.checks.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"`search` needs the package optuna: pip install 'ianvs\[search\]'"):
        call(searched_job(tmp_path, "{name: tpe, trials: 1}"))


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
    with pytest.raises(ConfigError, match="noise is a share: at most 1"):
        ianvs.validate(job)
    job = searched_job(tmp_path / "rounds", "{name: tpe, select: {by: first_rounds, rounds: 5}}")
    with pytest.raises(ConfigError, match="5 rounds to choose on leave none to report: the exam has 5"):
        ianvs.validate(job)
    job = searched_job(tmp_path / "stops", "{name: asha, first_rung: 5}")
    assert ["no trial of majority can be stopped" in str(one) for one in ianvs.validate(job).warnings] == [True]


def test_a_plan_says_what_a_search_will_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ianvs.cli import main

    job = searched_job(tmp_path, "{name: asha, trials: 7}")
    assert main(["plan", "-f", str(job)]) == 0
    said = capsys.readouterr().out
    assert "search for majority: asha, 7 trials of noise 0 to 0.9; by accuracy on all rounds of seed 0." in said
    assert "0 asked for so far; the winner is run with all 2 seeds." in said
    ianvs.validate(job)
    main(["plan", "-f", str(job)])
    assert "Trials go to round 2, the best of them to 5." in capsys.readouterr().out


def test_a_value_from_the_command_line_takes_the_place_of_a_range(tmp_path: Path) -> None:
    job = searched_job(tmp_path, "{name: tpe}", "- noise: {uniform: [0, 1]}\n- scale: {int: [1, 3]}")
    (study,) = ianvs.plan(job, settings={"noise": 0.25, "search.trials": 3}).studies
    assert list(study.space) == ["scale"] and study.spec.trials == 3
