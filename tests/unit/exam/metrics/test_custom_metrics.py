"""Metrics that an author writes: what is accepted, and what a slip is told."""

import math
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import ConfigError, Location
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics import EvaluationRecord
from ianvs.exam.metrics.custom import from_object
from tests.errors import errors_of, printed

EVIDENCE = EvaluationRecord(("a", "b"), np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]))
PLACE = Location(Path("testenv.yaml"), 7, 5)


def share_right(y_true, y_pred):
    """Share of right answers."""
    return np.mean(y_true == y_pred)


def metric_of(obj, **options):
    return from_object(MetricSpec("mine", url=Path("mine.py"), options=options, place=PLACE), obj)


def test_a_function_of_labels_and_predictions_is_a_metric():
    metric = metric_of(share_right)
    assert (metric.name, metric.level, metric.higher_is_better) == ("mine", "score", True)
    assert metric.summary == "Share of right answers."
    value = metric.function(EVIDENCE)
    assert value == 0.75
    assert type(value) is float


def test_a_function_may_return_a_mapping():
    metric = metric_of(lambda y_true, y_pred: {"a": np.float32(0.5), 1: 2})
    assert metric.function(EVIDENCE) == {"a": 0.5, "1": 2.0}


def test_a_class_accumulates_and_starts_anew_for_each_evaluation():
    class Right:
        higher_is_better = False

        def __init__(self, scale=1):
            self.right, self.scale = 0, scale

        def update(self, y_true, y_pred):
            self.right += int((y_true == y_pred).sum())

        def compute(self):
            return self.right * self.scale

    metric = metric_of(Right, scale=10)
    assert [metric.function(EVIDENCE), metric.function(EVIDENCE)] == [30.0, 30.0]
    assert not metric.higher_is_better


def test_options_of_the_testenv_are_keyword_arguments():
    def wrong(y_true, y_pred, *, penalty):
        return penalty * float(np.sum(y_true != y_pred))

    assert metric_of(wrong, penalty=3).function(EVIDENCE) == 3.0


def test_a_function_with_arbitrary_keywords_takes_any_option():
    assert metric_of(lambda y_true, y_pred, **options: options["beta"], beta=2).function(EVIDENCE) == 2.0


def test_undefined_is_nan_and_allowed():
    assert math.isnan(metric_of(lambda y_true, y_pred: math.nan).function(EVIDENCE))


def test_a_torch_scalar_is_a_number():
    torch = pytest.importorskip("torch")
    assert metric_of(lambda y_true, y_pred: torch.tensor(0.5)).function(EVIDENCE) == 0.5


def test_a_metric_that_sorts_in_place_does_not_change_the_labels_of_the_next():
    def sorts(y_true, y_pred):
        y_true.sort()
        return 0

    metric_of(sorts).function(EVIDENCE)
    assert EVIDENCE.y_true.tolist() == [0, 1, 1, 0]


def test_an_unknown_option_is_told_with_its_place_and_the_closest_name():
    with pytest.raises(ConfigError) as caught:
        metric_of(lambda y_true, y_pred, penalty=1: penalty, penalti=3)
    expected = "testenv.yaml:7:5: metric 'mine' has no option 'penalti'. Did you mean 'penalty'? It takes: penalty."
    assert str(caught.value.problems[0]) == expected


def test_the_labels_are_no_option():
    assert errors_of(metric_of, share_right, y_true=3) == [("unknown-option", "testenv.yaml:7:5")]


def test_an_option_without_default_must_be_given():
    assert errors_of(metric_of, lambda y_true, y_pred, k: k) == [("missing-option", "testenv.yaml:7:5")]


def one_parameter(results):
    return 1.0


class NoCompute:
    def update(self, y_true, y_pred): ...


class NarrowUpdate:
    def update(self, batch): ...

    def compute(self): ...


def odd_direction(y_true, y_pred):
    return 1.0


odd_direction.higher_is_better = "yes"


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (one_parameter, [("broken-contract", "")]),
        (NoCompute, [("broken-contract", "")]),
        (NarrowUpdate, [("broken-contract", "")]),
        (0.5, [("broken-contract", "")]),
        (odd_direction, [("broken-contract", "")]),
    ],
)
def test_what_is_no_metric_is_refused_before_anything_runs(obj, message):
    assert errors_of(metric_of, obj) == message


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, [("invalid-result", "")]),
        ("0.9", [("invalid-result", "")]),
        (True, [("invalid-result", "")]),
        (math.inf, [("invalid-result", "")]),
        (np.array([0.1, 0.2]), [("invalid-result", "")]),
        ({}, [("invalid-result", "")]),
        ({"a": "high"}, [("invalid-result", "")]),
    ],
)
def test_what_is_no_number_is_refused_by_the_metrics_name(returned, message):
    assert errors_of(metric_of(lambda y_true, y_pred: returned).function, EVIDENCE) == message


def test_a_metric_on_labels_says_so_where_only_counts_are_stored():
    assert errors_of(
        metric_of(share_right).function, EvaluationRecord(("a", "b"), counts=np.eye(2, dtype=np.int64))
    ) == [("missing-predictions", "")]


def test_an_error_inside_a_metric_keeps_its_type_and_names_the_metric():
    with pytest.raises(ZeroDivisionError) as caught:
        metric_of(lambda y_true, y_pred: 1 / 0).function(EVIDENCE)
    printed(caught.value.__notes__[0])
