"""Multi-domain-incremental: a round and a test set per domain, each with its own classes, the domain told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ianvs.config.spec import ScenarioSpec
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.scenarios import build_exam, check_scenario
from tests.errors import errors_of, recorded
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets


def scenes() -> Dataset:
    """streets() in which the domains have overlapping class lists: (road, car) by day, (sky, road) at dusk."""
    return replace(streets(), domain_classes={"day": (0, 1), "dusk": (2, 0)})


@pytest.mark.parametrize("name", ["multi-domain-incremental", "MDIL", "domain-aware", "multi_domain_incremental"])
def test_domains_come_in_the_order_of_using_with_their_own_class_lists(name):
    exam = build_exam(scenes(), ScenarioSpec(name), using=("dusk", "day"))
    assert [(r.name, r.classes) for r in exam.rounds] == [("dusk", (2, 0)), ("day", (0, 1))]
    assert [(t.name, t.classes) for t in exam.tests] == [("dusk", (2, 0)), ("day", (0, 1))]
    for part in (*exam.rounds, *exam.tests):
        samples = exam.dataset.train if hasattr(part, "train") else exam.dataset.test
        positions = part.train if hasattr(part, "train") else part.test
        assert set(samples.domains[positions]) == {part.name}


def test_the_domain_is_told_in_training_and_in_testing():
    rules = build_exam(scenes(), ScenarioSpec("MDIL")).rules
    assert (rules.task_in_training, rules.task_in_testing, rules.output_space) == (True, True, "task")
    assert rules.scenario == "multi-domain-incremental"


def test_without_using_domains_come_in_the_order_of_their_first_samples():
    assert [r.name for r in build_exam(scenes(), ScenarioSpec("MDIL")).rounds] == ["day", "dusk"]


def test_samples_with_one_class_each_come_in_domains_too():
    dataset = dataset_of([0, 1, 2, 0], [0, 2], domains=(["p", "p", "q", "q"], ["p", "q"]))
    exam = build_exam(dataset, ScenarioSpec("MDIL"))
    assert [r.classes for r in exam.rounds] == [(0, 1), (0, 2)]
    listed = build_exam(replace(dataset, domain_classes={"p": (1, 0), "q": (2, 0)}), ScenarioSpec("MDIL"))
    assert [t.classes for t in listed.tests] == [(1, 0), (2, 0)]


def test_a_number_of_rounds_that_is_not_that_of_the_domains_is_refused():
    assert recorded(check_scenario(ScenarioSpec("MDIL", {"rounds": 3}), None, ("a", "b"))) == [
        ("round-count-conflict", "")
    ]
    assert errors_of(build_exam, scenes(), ScenarioSpec("MDIL", {"rounds": 3})) == [("invalid-scenario", "")]


def test_data_without_domains_are_refused():
    assert errors_of(build_exam, dataset_of([0, 1], [0]), ScenarioSpec("MDIL")) == [("invalid-scenario", "")]


def test_what_was_taught_before_a_test_sets_own_round():
    exam = build_exam(scenes(), ScenarioSpec("MDIL"), using=("dusk", "day"))
    assert [exam.taught_before(j) for j in range(2)] == [(), (0, 2)]
    cut = build_exam(scenes(), ScenarioSpec("IIL", {"rounds": 2}))
    assert cut.taught_before(0) is None  # one test set, which belongs to no round


def test_in_other_scenarios_classes_of_label_pictures_are_those_of_the_domains_that_occur():
    natural = build_exam(scenes(), ScenarioSpec("DIL"))
    assert [set(r.classes) for r in natural.rounds] == [{0, 1}, {0, 2}]
    assert not natural.rules.task_in_testing
    cut = build_exam(scenes(), None, incremental_rounds=3)
    assert {r.classes for r in cut.rounds} == {(0, 1, 2)}
    single = build_exam(scenes(), ScenarioSpec("MDIL"), using=("day", "dusk"), as_one=True)
    assert np.array_equal(single.rounds[0].train, np.arange(6))
    assert [t.classes for t in single.tests] == [(0, 1), (2, 0)]
