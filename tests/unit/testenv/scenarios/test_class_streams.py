"""Task-incremental, task-free and online: the rounds of class-incremental, under other rules."""

from __future__ import annotations

import numpy as np
import pytest

from ianvs.exam.scenarios import Rules, Stream
from tests.errors import errors_of
from tests.unit.exam.scenarios.exams import exam_of
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets, texts

TEN = dataset_of([*range(10)] * 5, range(10))
GROUPING = [
    {"rounds": 5},
    {"rounds": 3, "first": 4, "order_seed": 2},
    {"rounds": 2, "class_order": [*range(9, -1, -1)]},
]


@pytest.mark.parametrize("options", GROUPING)
@pytest.mark.parametrize("name", ["TIL", "TFCL", "OCL"])
def test_rounds_and_tests_are_those_of_class_incremental(name, options):
    exam, reference = exam_of(TEN, name, options), exam_of(TEN, "CIL", options)
    for part, same in zip((*exam.rounds, *exam.tests), (*reference.rounds, *reference.tests), strict=True):
        assert (part.name, part.classes) == (same.name, same.classes)
        positions = [getattr(p, "train", None) if hasattr(p, "train") else p.test for p in (part, same)]
        np.testing.assert_array_equal(*positions)


@pytest.mark.parametrize(
    ("name", "rules", "stream"),
    [
        ("TIL", Rules("task-incremental", True, True, "task"), None),
        ("TFCL", Rules("task-free", False, False, "seen", passes=None, boundaries=False), Stream(10)),
        ("OCL", Rules("online", False, False, "seen", passes=1, boundaries=False), Stream(10)),
    ],
)
def test_rules_are_those_of_the_surveys_table(name, rules, stream):
    exam = exam_of(TEN, name, {"rounds": 5})
    assert exam.rules == rules
    assert exam.stream == stream


def test_chunks_passes_and_examinations_of_a_stream_are_as_asked_for():
    exam = exam_of(TEN, "online", {"rounds": 5, "batch": 1, "passes": 3, "eval_every": 7})
    assert exam.stream == Stream(1, 7)
    assert exam.rules.passes == 3
    assert exam_of(TEN, "task-free", {"rounds": 5, "batch": 4}).stream == Stream(4)


def test_a_task_free_learner_has_no_number_of_passes():
    assert errors_of(exam_of, TEN, "task-free", {"rounds": 5, "passes": 2}) == [("unknown-option", "")]


@pytest.mark.parametrize("dataset", [texts(), streets()], ids=["texts", "label pictures"])
@pytest.mark.parametrize(
    "name", ["task-incremental", "task-free", "online", "blurred-boundary", "continual-pre-training"]
)
def test_a_class_per_sample_is_needed(name, dataset):
    assert errors_of(exam_of, dataset, name, {"rounds": 2}) == [("invalid-scenario", "")]
