"""What is said about a scenario block that can't be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.base.errors import Location
from ianvs.config.spec import ScenarioSpec
from ianvs.exam.scenarios import build_exam, check_scenario
from tests.errors import errors_of
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets, texts

TEN = dataset_of(range(10), range(10))
PICTURES = dataset_of(range(4), range(4), shape=(4, 4, 1))


def refusal(name, options=None, *, dataset=TEN, places=None, **settings):
    return errors_of(build_exam, dataset, ScenarioSpec(name, options or {}, places=places or {}), **settings)


@pytest.mark.parametrize("name", ["class-incremental", "class_incremental", "CIL", "cil", "Class Incremental"])
def test_a_scenario_answers_to_its_aliases(name):
    assert build_exam(TEN, ScenarioSpec(name, {"rounds": 5})).rules.scenario == "class-incremental"


def test_an_unknown_scenario_is_refused_with_the_closest_and_the_list():
    place = Location(Path("testenv.yaml"), 9, 11)
    assert refusal("class-incremantal", places={"name": place}) == CODES


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("IIL", "instance-incremental"),
        ("DIL", "domain-incremental"),
        ("TIL", "task-incremental"),
        ("CIL", "class-incremental"),
        ("TFCL", "task-free"),
        ("OCL", "online"),
        ("BBCL", "blurred-boundary"),
        ("CPT", "continual-pre-training"),
    ],
)
def test_the_scenarios_of_the_survey_are_there_by_name_and_short_form(short, name):
    options = {"permutation": True, "rounds": 2} if short == "DIL" else {"rounds": 2}
    options |= {"batch": 2} if short in ("TFCL", "OCL") else {}
    assert build_exam(TEN, ScenarioSpec(short, options)).rules.scenario == name
    assert build_exam(TEN, ScenarioSpec(name, options)).rules.scenario == name


def test_an_unknown_option_is_refused_at_its_place_with_the_closest():
    place = Location(Path("testenv.yaml"), 10, 5)
    assert refusal("CIL", {"roundes": 5}, places={"roundes": place}) == CODES


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("CIL", {"rounds": 3}, "`rounds` can be 1, 2, 5, 10"),
        ("CIL", {"rounds": 3, "first": 5}, "`rounds` can be 2, 6"),
        ("CIL", {"rounds": 2, "first": 10}, "can't be cut"),
        ("CIL", {}, "say how many `rounds`"),
        ("CIL", {"rounds": 0}, "'rounds' of class-incremental should be greater than or equal to 1"),
        ("CIL", {"rounds": "5"}, "valid integer"),
        ("CIL", {"rounds": 5, "class_order": ["c1", "k2"]}, "there is no class 'k2'"),
        ("CIL", {"rounds": 5, "class_order": [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]}, "missing: c9; more than once: c0"),
        ("CIL", {"rounds": 5, "class_order": [0], "order_seed": 1}, "both say the order"),
        ("DIL", {}, "knows no domains"),
        ("DIL", {"permutation": True}, "say how many `rounds`"),
        ("DIL", {"rotation": [0, 90]}, "needs pictures"),
        ("DIL", {"rotation": [0, 90], "permutation": True}, "Keep one"),
        ("DIL", {"rotation": [0, 90], "rounds": 3}, "`rounds` gives 3 but `rotation` gives 2"),
        ("DIL", {"rotation": [0, 0]}, "an angle twice"),
        ("DIL", {"seed": 3}, "belongs to `permutation: true`"),
        ("OCL", {"rounds": 5, "batch": 5}, "`batch` is 5, more than the samples of c0+c1, the shortest round"),
        ("TFCL", {"rounds": 5, "batch": 2, "eval_every": 1}, "`eval_every: 1` is less than `batch: 2`"),
        ("BBCL", {"rounds": 5, "batch": 2, "eval_every": 1}, "`eval_every: 1` is less than `batch: 2`"),
        ("IIL", {}, "say how many `rounds`"),
        ("IIL", {"rounds": 11}, "10 samples can't be cut into 11 rounds"),
        ("IIL", {"sizes": [4, 4]}, "sums to 8; it must share out all 10"),
        ("IIL", {"sizes": [10, 0]}, "at least 1 to a round"),
        ("IIL", {"sizes": [5, 5], "rounds": 3}, "`rounds` gives 3 but `sizes` gives 2"),
        ("IIL", {"mode": "sizes", "rounds": 2}, "needs `sizes`"),
        ("IIL", {"mode": "equal", "sizes": [5, 5]}, "Keep one"),
        ("IIL", {"mode": "qual", "rounds": 2}, "'equal' or 'sizes'"),
    ],
)
def test_a_slip_is_refused_with_the_remedy(name, options, expected):
    assert refusal(name, options) == CODES


def test_rounds_that_disagree_with_the_testenv_are_refused_at_their_place():
    place = Location(Path("testenv.yaml"), 10, 5)
    assert refusal("CIL", {"rounds": 5}, places={"rounds": place}, incremental_rounds=2) == CODES


def test_disagreeing_rounds_are_found_without_the_data():
    assert check_scenario(ScenarioSpec("CIL", {"rounds": 5}), incremental_rounds=2)
    assert check_scenario(None, incremental_rounds=2, using=("CS", "SYN", "CR"))
    assert not check_scenario(ScenarioSpec("CIL", {"rounds": 5}), incremental_rounds=5)
    assert not check_scenario(None, incremental_rounds=2)
    assert not check_scenario(ScenarioSpec("DIL", {"permutation": True}), incremental_rounds=2, using=("CS",))


@pytest.mark.parametrize("dataset", [texts(), streets()], ids=["texts", "label pictures"])
def test_class_incremental_needs_a_class_per_sample(dataset):
    assert refusal("CIL", {"rounds": 2}, dataset=dataset) == CODES


@pytest.mark.parametrize("dataset", [texts(), streets()], ids=["texts", "label pictures"])
def test_made_domains_need_a_class_per_sample(dataset):
    assert refusal("DIL", {"permutation": True, "rounds": 2}, dataset=dataset) == CODES


def test_a_round_without_samples_is_refused():
    dataset = dataset_of([0, 1], [0, 1], classes=4)
    assert refusal("CIL", {"rounds": 2}, dataset=dataset) == CODES


def test_a_domain_without_test_samples_is_refused():
    dataset = dataset_of([0, 0], [0], domains=(["p", "q"], ["p"]))
    assert refusal("DIL", dataset=dataset) == CODES


def test_an_unknown_splitting_method_is_refused_with_the_closest():
    assert errors_of(build_exam, TEN, None, splitting_method="shufled") == CODES


def test_more_rounds_than_samples_are_refused():
    assert errors_of(build_exam, TEN, None, incremental_rounds=11) == CODES
