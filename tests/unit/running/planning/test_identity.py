"""What must and what must not change the identity of a case."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import ianvs
from ianvs.base.secrets import HIDDEN
from tests.edits import edited
from tests.jobs import MAJORITY, TESTENV, write_job


def ids(folder: Path, **changes: object) -> list[str]:
    return [case.id for case, _ in ianvs.plan(write_job(folder, **changes)).cases()]  # type: ignore[arg-type]


@pytest.fixture
def before(tmp_path: Path) -> list[str]:
    return ids(tmp_path / "before")


SAME = {
    "another folder": {},
    "the spelling of numbers": {"hyperparameters": edited("- bias: {values: [0x0, 1_000]}", "1_000", "1000")},
    "another layout of the yaml": {"hyperparameters": "- bias:\n    values:\n      - 0   # none\n      - 1000"},
    "the metrics": {"testenv": edited(TESTENV, "{name: BWT}", "{name: BWT}, {name: FM}, {name: f1}")},
    "jobs and engine": {"job": "seeds: [0, 1]\njobs: 1\nengine: inline"},
    "the algorithm's name": {"algorithms": ("another name",)},
}

OTHER = {
    "a constant of the plugin": {"plugin": edited(MAJORITY, "/ 1000", "/ 999")},
    "a hyperparameter": {"hyperparameters": "- bias: {values: [1, 1001]}"},
    "the seeds": {"job": "seeds: [2, 3]"},
    "the number of rounds": {"testenv": edited(TESTENV, "rounds: 5", "rounds: 2")},
    "an option of the data": {"testenv": edited(TESTENV, "name: digits", "name: digits, split_seed: 1")},
    "the number of threads": {"job": "seeds: [0, 1]\nthreads: 2"},
    "a gate": {"testenv": TESTENV + "model_eval: {model_metric: {name: accuracy}, threshold: 0, operator: '>='}\n"},
}


@pytest.mark.parametrize("what", SAME)
def test_what_does_not_change_a_result_does_not_change_its_id(before: list[str], tmp_path: Path, what: str) -> None:
    assert ids(tmp_path / "after", **SAME[what]) == before


@pytest.mark.parametrize("what", OTHER)
def test_what_changes_a_result_changes_every_id(before: list[str], tmp_path: Path, what: str) -> None:
    after = ids(tmp_path / "after", **OTHER[what])
    assert not set(after) & set(before)


def test_more_seeds_and_values_keep_the_ids_that_were_there(before: list[str], tmp_path: Path) -> None:
    after = ids(tmp_path / "after", job="seeds: [0, 1, 2]", hyperparameters="- bias: {values: [5, 0, 1000]}")
    assert set(before) < set(after)
    assert len(after) == 9


def test_cases_of_a_row_differ_in_the_seed_alone(tmp_path: Path) -> None:
    cases = [case for case, _ in ianvs.plan(write_job(tmp_path)).cases()]
    for _, row in itertools.groupby(cases, key=lambda case: case.row):
        listed = list(row)
        assert [case.seed for case in listed] == [0, 1]
        assert len({str(case.hyperparameters) for case in listed}) == 1


def test_the_order_is_that_of_the_files_the_last_axis_fastest(tmp_path: Path) -> None:
    grid = "- bias: {values: [1, 2]}\n- fail_in_round: {values: [7, 8]}"
    cases = [case for case, _ in ianvs.plan(write_job(tmp_path, hyperparameters=grid, job="seeds: [4]")).cases()]
    assert [tuple(case.hyperparameters.values()) for case in cases] == [(1, 7), (1, 8), (2, 7), (2, 8)]


def test_the_file_of_a_scenario_is_part_of_the_identity_wherever_it_lies(tmp_path: Path) -> None:
    def with_scenario(folder: str, code: str) -> list[str]:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "mine.py").write_text(code)
        return ids(tmp_path / folder, testenv=edited(TESTENV, "name: class-incremental", "name: M, url: ./mine.py"))

    before = with_scenario("one", "class M: ...\n")
    assert with_scenario("two", "class M: ...\n") == before
    assert not set(with_scenario("one", "class M: pass\n")) & set(before)


def test_a_helper_module_of_the_plugin_is_part_of_the_identity(tmp_path: Path) -> None:
    def with_helper(text: str) -> list[str]:
        path = write_job(tmp_path, plugin=f"from helper import X\nprint(X)\n{MAJORITY}")
        (tmp_path / "helper.py").write_text(text)
        return [case.id for case, _ in ianvs.plan(path).cases()]

    assert not set(with_helper("X = 1\n")) & set(with_helper("X = 2\n"))


@pytest.mark.parametrize(
    ("option", "file", "said"),
    [("weights", "weights.pt", "weights.pt"), ("base_model", "m.gguf", "m.gguf"), ("base_model", "in/m.gguf", "in")],
)
def test_a_file_of_weights_counts_by_its_content(tmp_path: Path, option: str, file: str, said: str) -> None:
    weights = tmp_path / file
    weights.parent.mkdir(exist_ok=True)
    weights.write_bytes(b"one")
    given = {"plugin": edited(MAJORITY, "bias=0", f"bias=0, {option}=None"),
             "hyperparameters": f"- {option}: {{values: ['{tmp_path / said}']}}"}  # fmt: skip
    first = ids(tmp_path / "job", **given)
    weights.write_bytes(b"two")
    second = ids(tmp_path / "job", **given)
    weights.write_bytes(b"one")
    assert not set(first) & set(second)
    assert ids(tmp_path / "job", **given) == first


def test_secret_values_are_not_written_into_the_identity(tmp_path: Path) -> None:
    grid = "- api_key: {values: [sesame-open-1234]}"
    plugin = edited(MAJORITY, "bias=0,", "bias=0, api_key=None,")
    [planned] = ianvs.plan(write_job(tmp_path, plugin=plugin, hyperparameters=grid, job="seeds: [0]"))
    assert planned.algorithm.identity_of(planned.case)["hyperparameters"] == {"api_key": HIDDEN}
