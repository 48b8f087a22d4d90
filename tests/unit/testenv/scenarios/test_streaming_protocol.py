"""CLEAR's streaming protocol over natural domains: what will be taught is asked before it is."""

from __future__ import annotations

import pytest

from ianvs.config.spec import ScenarioSpec
from ianvs.exam.scenarios import check_scenario
from tests.errors import errors_of, recorded
from tests.unit.exam.scenarios.exams import exam_of
from tests.unit.exam.scenarios.small_datasets import dataset_of

BUCKETS = dataset_of([0, 1] * 6, [0, 1] * 3, domains=([*"aaaabbbbcccc"], [*"aabbcc"]))


def test_the_last_domain_is_asked_and_never_taught():
    exam = exam_of(BUCKETS, "DIL", {"streaming": True})
    assert [r.name for r in exam.rounds] == ["a", "b"]
    assert [t.name for t in exam.tests] == ["a", "b", "c"]
    assert exam.rules.test_sets == "future"
    assert exam_of(BUCKETS, "DIL").rules.test_sets == "all"


def test_rounds_are_one_fewer_than_the_domains_in_use():
    assert [r.name for r in exam_of(BUCKETS, "DIL", {"streaming": True, "rounds": 1}, using=("c", "a")).rounds] == ["c"]
    conflict = ScenarioSpec("DIL", {"streaming": True, "rounds": 3})
    assert recorded(check_scenario(conflict, None, ("a", "b", "c"))) == [("round-count-conflict", "")]


@pytest.mark.parametrize(
    ("options", "using", "code"),
    [
        ({"streaming": True, "rotation": [0, 90]}, (), "invalid-option"),
        ({"streaming": True}, ("b",), "invalid-scenario"),
        ({"streaming": True, "rounds": 3}, (), "invalid-scenario"),
    ],
)
def test_a_slip_is_refused_with_the_remedy(options, using, code):
    assert errors_of(exam_of, BUCKETS, "DIL", options, using=using) == [(code, "")]
