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
    assert refusal("class-incremantal", places={"name": place}) == [("unknown-scenario", "testenv.yaml:9:11")]


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
    assert refusal("CIL", {"roundes": 5}, places={"roundes": place}) == [("unknown-option", "testenv.yaml:10:5")]


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("CIL", {"rounds": 3}, "invalid-scenario"),
        ("CIL", {"rounds": 3, "first": 5}, "invalid-scenario"),
        ("CIL", {"rounds": 2, "first": 10}, "invalid-scenario"),
        ("CIL", {}, "invalid-scenario"),
        ("CIL", {"rounds": 0}, "invalid-option"),
        ("CIL", {"rounds": "5"}, "invalid-option"),
        ("CIL", {"rounds": 5, "class_order": ["c1", "k2"]}, "invalid-scenario"),
        ("CIL", {"rounds": 5, "class_order": [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]}, "invalid-scenario"),
        ("CIL", {"rounds": 5, "class_order": [0], "order_seed": 1}, "invalid-option"),
        ("DIL", {}, "invalid-scenario"),
        ("DIL", {"permutation": True}, "invalid-scenario"),
        ("DIL", {"rotation": [0, 90]}, "invalid-scenario"),
        ("DIL", {"rotation": [0, 90], "permutation": True}, "invalid-option"),
        ("DIL", {"rotation": [0, 90], "rounds": 3}, "round-count-conflict"),
        ("DIL", {"rotation": [0, 0]}, "invalid-option"),
        ("DIL", {"seed": 3}, "invalid-option"),
        ("OCL", {"rounds": 5, "batch": 5}, "invalid-scenario"),
        ("TFCL", {"rounds": 5, "batch": 2, "eval_every": 1}, "invalid-scenario"),
        ("BBCL", {"rounds": 5, "batch": 2, "eval_every": 1}, "invalid-scenario"),
        ("IIL", {}, "invalid-scenario"),
        ("IIL", {"rounds": 11}, "invalid-scenario"),
        ("IIL", {"sizes": [4, 4]}, "invalid-scenario"),
        ("IIL", {"sizes": [10, 0]}, "invalid-scenario"),
        ("IIL", {"sizes": [5, 5], "rounds": 3}, "round-count-conflict"),
        ("IIL", {"mode": "sizes", "rounds": 2}, "invalid-option"),
        ("IIL", {"mode": "equal", "sizes": [5, 5]}, "invalid-option"),
        ("IIL", {"mode": "qual", "rounds": 2}, "invalid-option"),
    ],
)
def test_a_slip_is_refused_with_the_remedy(name, options, code):
    assert refusal(name, options) == [(code, "")]


def test_rounds_that_disagree_with_the_testenv_are_refused_at_their_place():
    place = Location(Path("testenv.yaml"), 10, 5)
    assert refusal("CIL", {"rounds": 5}, places={"rounds": place}, incremental_rounds=2) == [
        ("round-count-conflict", "testenv.yaml:10:5")
    ]


def test_disagreeing_rounds_are_found_without_the_data():
    assert check_scenario(ScenarioSpec("CIL", {"rounds": 5}), incremental_rounds=2)
    assert check_scenario(None, incremental_rounds=2, using=("CS", "SYN", "CR"))
    assert not check_scenario(ScenarioSpec("CIL", {"rounds": 5}), incremental_rounds=5)
    assert not check_scenario(None, incremental_rounds=2)
    assert not check_scenario(ScenarioSpec("DIL", {"permutation": True}), incremental_rounds=2, using=("CS",))


@pytest.mark.parametrize("dataset", [texts(), streets()], ids=["texts", "label pictures"])
def test_class_incremental_needs_a_class_per_sample(dataset):
    assert refusal("CIL", {"rounds": 2}, dataset=dataset) == [("invalid-scenario", "")]


@pytest.mark.parametrize("dataset", [texts(), streets()], ids=["texts", "label pictures"])
def test_made_domains_need_a_class_per_sample(dataset):
    assert refusal("DIL", {"permutation": True, "rounds": 2}, dataset=dataset) == [("invalid-scenario", "")]


def test_a_round_without_samples_is_refused():
    dataset = dataset_of([0, 1], [0, 1], classes=4)
    assert refusal("CIL", {"rounds": 2}, dataset=dataset) == [("invalid-scenario", "")]


@pytest.mark.parametrize("rounds", [2, 3])
def test_a_class_that_only_the_test_part_has_is_named(rounds):
    dataset = dataset_of([0, 1], [0, 1, 2], classes=3)
    assert refusal("CIL", {"rounds": rounds}, dataset=dataset) == [("invalid-scenario", "")]


def test_a_domain_without_test_samples_is_refused():
    dataset = dataset_of([0, 0], [0], domains=(["p", "q"], ["p"]))
    assert refusal("DIL", dataset=dataset) == [("invalid-scenario", "")]


def test_an_unknown_splitting_method_is_refused_with_the_closest():
    assert errors_of(build_exam, TEN, None, splitting_method="shufled") == [("invalid-scenario", "")]


def test_more_rounds_than_samples_are_refused():
    assert errors_of(build_exam, TEN, None, incremental_rounds=11) == [("invalid-scenario", "")]
