"""Domain-incremental learning of which class of its group a sample is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import errors_of
from tests.unit.exam.scenarios.exams import exam_of
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets

TEN = dataset_of([*range(10), *range(10)], range(10))
DIL = "domain-incremental"


def refusal(options, dataset=TEN):
    return errors_of(exam_of, dataset, DIL, options)


def test_five_groups_of_digits_ask_for_y_mod_2():
    exam = exam_of(TEN, DIL, {"class_groups": 5})
    for k, (round_, test) in enumerate(zip(exam.rounds, exam.tests, strict=True)):
        assert set(TEN.train.y[round_.train]) == set(TEN.test.y[test.test]) == {2 * k, 2 * k + 1}
        assert exam.dataset.train.y[round_.train].tolist() == (TEN.train.y[round_.train] % 2).tolist()
        assert exam.dataset.test.y[test.test].tolist() == (TEN.test.y[test.test] % 2).tolist()
        assert round_.classes == test.classes == (0, 1)
    assert exam.dataset.classes == ("0", "1")
    assert (exam.rules.scenario, exam.rules.output_space, exam.rules.task_in_testing) == (DIL, "all", False)
    assert [round_.name for round_ in exam.rounds][:2] == ["c0+c1", "c2+c3"]


@given(data=st.data())
def test_labels_are_positions_in_any_order_of_classes(data):
    groups, size = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    order = data.draw(st.permutations(range(groups * size)))
    labels = data.draw(st.permutations([*range(groups * size)] * 2))
    dataset = dataset_of(labels, labels)
    exam = exam_of(dataset, DIL, {"class_groups": groups, "class_order": order})
    seen = []
    for k, round_ in enumerate(exam.rounds):
        group = order[k * size : (k + 1) * size]
        for i in round_.train:
            assert group[exam.dataset.train.y[i]] == labels[i]
        seen += round_.train.tolist()
    assert sorted(seen) == list(range(len(labels)))


def test_a_seed_draws_the_order_of_class_incremental():
    mine = exam_of(TEN, DIL, {"class_groups": 5, "order_seed": 3})
    theirs = exam_of(TEN, "class-incremental", {"rounds": 5, "order_seed": 3})
    assert [r.train.tolist() for r in mine.rounds] == [r.train.tolist() for r in theirs.rounds]


def test_taught_as_one_the_labels_are_the_same():
    exam = exam_of(TEN, DIL, {"class_groups": 5}, as_one=True)
    assert exam.dataset.classes == ("0", "1")
    assert exam.dataset.train.y.tolist() == (TEN.train.y % 2).tolist()
    assert [len(exam.rounds[0].train), len(exam.tests[0].test)] == [20, 10]


def test_the_data_that_others_share_are_left_as_they_were():
    before = TEN.train.y.copy()
    exam_of(TEN, DIL, {"class_groups": 2})
    assert np.array_equal(TEN.train.y, before)


def test_the_long_tail_counts_positions():
    dataset = dataset_of([*range(4)] * 100, range(4))
    exam = exam_of(dataset, DIL, {"class_groups": 2, "modifiers": {"long_tail": 0.1}})
    taught = np.concatenate([exam.dataset.train.y[r.train] for r in exam.rounds])
    assert np.bincount(taught).tolist() == [200, 20]


def test_groups_are_of_one_size():
    assert refusal({"class_groups": 3}) == [("invalid-scenario", "")]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"class_groups": 5, "rotation": [0, 30]}, "invalid-option"),
        ({"order_seed": 1, "rotation": [0, 30]}, "invalid-option"),
        ({"class_groups": 5, "order_seed": 1, "class_order": [*range(10)]}, "invalid-option"),
        ({"class_groups": 5, "class_order": [*range(9), 8]}, "invalid-scenario"),
        ({"class_groups": 5, "rounds": 4}, "round-count-conflict"),
    ],
)
def test_what_does_not_go_together_is_refused(options, code):
    assert refusal(options) == [(code, "")]


def test_label_pictures_have_no_groups():
    assert refusal({"class_groups": 3}, streets()) == [("invalid-scenario", "")]
