"""Continual pre-training: stages without labels, and downstream tasks with labelled samples to adapt on."""

from __future__ import annotations

import numpy as np
import pytest

from ianvs.exam.scenarios import Rules
from tests.errors import errors_of
from tests.unit.exam.scenarios.exams import exam_of, same_exam
from tests.unit.exam.scenarios.small_datasets import dataset_of

SIX = dataset_of([*range(6)] * 10, [*range(6)] * 2)
HOMES = dataset_of([0, 1] * 6, [0, 1] * 3, domains=(["p"] * 4 + ["q"] * 8, ["p", "p", "q", "q", "q", "q"]))


def test_stages_are_the_samples_of_class_groups_without_labels():
    exam, plain = (
        exam_of(SIX, "CPT", {"rounds": 3, "order_seed": 1}),
        exam_of(SIX, "CIL", {"rounds": 3, "order_seed": 1}),
    )
    for stage, round_ in zip(exam.rounds, plain.rounds, strict=True):
        np.testing.assert_array_equal(stage.train, round_.train)
        assert stage.labels.dtype == np.int64
        assert stage.labels.tolist() == [-1] * 20
        assert stage.classes == ()  # none is taught where none is told
    assert exam.rules == Rules("continual-pre-training", True, True, "task", training_labels=False)


def test_by_default_a_downstream_task_is_about_what_its_stage_showed():
    exam = exam_of(SIX, "CPT", {"rounds": 3})
    assert [t.classes for t in exam.tests] == [(0, 1), (2, 3), (4, 5)]
    for stage, task in zip(exam.rounds, exam.tests, strict=True):
        np.testing.assert_array_equal(task.adapt, stage.train)
        assert set(SIX.test.y[task.test]) == set(SIX.train.y[task.adapt]) == set(task.classes)


def test_shots_limit_the_samples_of_each_class_to_adapt_on():
    exam = exam_of(SIX, "CPT", {"rounds": 2, "shots": 4})
    for task in exam.tests:
        assert np.bincount(SIX.train.y[task.adapt], minlength=6)[list(task.classes)].tolist() == [4, 4, 4]
        assert len(set(task.adapt.tolist())) == 12
    assert same_exam(exam, exam_of(SIX, "CPT", {"rounds": 2, "shots": 4, "seed": 0}))
    assert not same_exam(exam, exam_of(SIX, "CPT", {"rounds": 2, "shots": 4, "seed": 1}))


def test_downstream_tasks_can_be_listed_and_overlap():
    exam = exam_of(SIX, "CPT", {"rounds": 2, "downstream": [["c5", "c0"], ["c0", "c1", "c2"], ["c3", "c4"]]})
    assert [(t.name, t.classes) for t in exam.tests] == [("c5+c0", (5, 0)), ("c0+c1+c2", (0, 1, 2)), ("c3+c4", (3, 4))]
    assert [len(t.adapt) for t in exam.tests] == [20, 30, 20]


def test_stages_can_be_the_datas_domains():
    exam = exam_of(HOMES, "CPT", {"stages": "domains"})
    assert [(r.name, len(r.train)) for r in exam.rounds] == [("p", 4), ("q", 8)]
    assert [(t.name, len(t.test), len(t.adapt)) for t in exam.tests] == [("p", 2, 4), ("q", 4, 8)]
    assert all((r.labels == -1).all() for r in exam.rounds)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "invalid-scenario"),
        ({"rounds": 2, "shots": 11}, "invalid-scenario"),
        ({"rounds": 2, "downstream": [["c0", "c11"]]}, "invalid-scenario"),
        ({"rounds": 2, "downstream": []}, "invalid-scenario"),
        ({"stages": "domains"}, "invalid-scenario"),
        ({"stages": "domains", "first": 2}, "invalid-scenario"),
        ({"rounds": 2, "modifiers": {"labelled": 0.5}}, "invalid-scenario"),
    ],
)
def test_a_slip_is_refused_with_the_remedy(options, code):
    assert errors_of(exam_of, SIX, "CPT", options) == [(code, "")]
