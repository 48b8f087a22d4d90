"""Rounds of unequal sizes, of listed classes, and of classes that return."""

import numpy as np
import pytest

from tests.errors import errors_of
from tests.unit.exam.scenarios.small_datasets import dataset_of
from tests.unit.testenv.scenarios.test_rounds import assert_shared_out, exam_of

LABELS = [c for c in range(5) for _ in range(4)]
DATA = dataset_of(LABELS, list(range(5)) * 2)
NAMES = "class-incremental", "task-incremental", "open-world"


@pytest.mark.parametrize("name", NAMES)
def test_sizes_say_how_many_classes_each_round_has(name):
    exam = exam_of(DATA, name, {"sizes": [1, 3, 1], "class_order": ["c4", "c0", "c1", "c2", "c3"]})
    assert [r.classes for r in exam.rounds] == [(4,), (0, 1, 2), (3,)]
    assert_shared_out([r.train for r in exam.rounds], 20)


@pytest.mark.parametrize("name", NAMES)
def test_classes_are_listed_by_round_and_may_return_with_other_samples(name):
    listed = [["c0"], ["c1", 2, "c3"], ["c4", "c0"], ["c1"]]
    exam = exam_of(DATA, name, {"round_classes": listed})
    assert [r.classes for r in exam.rounds] == [(0,), (1, 2, 3), (4, 0), (1,)]
    assert [t.classes for t in exam.tests] == [r.classes for r in exam.rounds]
    assert_shared_out([r.train for r in exam.rounds], 20)
    brought = [np.bincount(DATA.train.y[r.train], minlength=5).tolist() for r in exam.rounds]
    assert brought == [[2, 0, 0, 0, 0], [0, 2, 4, 4, 0], [2, 0, 0, 0, 4], [0, 2, 0, 0, 0]]
    assert sorted(exam.tests[2].test.tolist()) == [0, 4, 5, 9]
    other = exam_of(DATA, name, {"round_classes": listed, "order_seed": 1})
    assert [r.train.tolist() for r in other.rounds] != [r.train.tolist() for r in exam.rounds]


@pytest.mark.parametrize(
    "options",
    [
        {"sizes": [2, 2]},
        {"sizes": [2, 3], "rounds": 3},
        {"sizes": [2, 3], "first": 2},
        {"round_classes": [["c0", "c0"], ["c1", "c2", "c3", "c4"]]},
        {"round_classes": [["c0"], [], ["c1", "c2", "c3", "c4"]]},
        {"round_classes": [["c0"], ["c1", "c2", "c3"]]},
        {"round_classes": [["c0"], ["c1", "c2", "c3", "c5"]]},
        {"round_classes": [["c0", "c1", "c2", "c3", "c4"], *[["c0"]] * 4]},
        {"round_classes": [["c0"], ["c1", "c2", "c3", "c4"]], "class_order": "alphabetical"},
    ],
    ids=lambda options: "-".join(options),
)
def test_what_can_not_be_is_refused(options):
    codes = {code for code, _ in errors_of(exam_of, DATA, "class-incremental", options)}
    assert codes <= {"invalid-scenario", "invalid-option", "round-count-conflict"} and codes


def test_a_class_has_one_home_where_boundaries_are_blurred():
    options = {"kind": "blurry", "round_classes": [["c0"], ["c1", "c2", "c3", "c4"], ["c0"]]}
    assert errors_of(exam_of, DATA, "blurred-boundary", options) == [("invalid-scenario", "")]
