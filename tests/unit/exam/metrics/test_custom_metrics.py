"""Metrics that an author writes: what is accepted, and what a slip is told."""

import math
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import ConfigError, Place, PluginError
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics import EvaluationRecord
from ianvs.exam.metrics.custom import from_object

EVIDENCE = EvaluationRecord(("a", "b"), np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0]))
PLACE = Place(Path("testenv.yaml"), 7, 5)


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
    with pytest.raises(ConfigError, match=r"has no option 'y_true'.* It takes none"):
        metric_of(share_right, y_true=3)


def test_an_option_without_default_must_be_given():
    with pytest.raises(ConfigError, match="metric 'mine' needs the option 'k'"):
        metric_of(lambda y_true, y_pred, k: k)


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
        (one_parameter, r"metric 'mine' \(mine\.py\) takes \(results\)\. It is called with two arguments"),
        (NoCompute, r"is a class without compute\(\)"),
        (NarrowUpdate, r"update\(self, batch\) can't be called as update\(y_true, y_pred\)"),
        (0.5, r"is a float\. A metric is a function"),
        (odd_direction, r"`higher_is_better` is 'yes'; it must be True or False"),
    ],
)
def test_what_is_no_metric_is_refused_before_anything_runs(obj, message):
    with pytest.raises(PluginError, match=message):
        metric_of(obj)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "returned None, .* lack a `return`"),
        ("0.9", "returned '0.9', not a finite number"),
        (True, "returned True"),
        (math.inf, "returned inf"),
        (np.array([0.1, 0.2]), r"returned array\(\[0\.1, 0\.2\]\)"),
        ({}, "returned an empty mapping"),
        ({"a": "high"}, "part 'a', returned 'high'"),
    ],
)
def test_what_is_no_number_is_refused_by_the_metrics_name(returned, message):
    with pytest.raises(PluginError, match=f"metric 'mine' .*{message}"):
        metric_of(lambda y_true, y_pred: returned).function(EVIDENCE)


def test_a_metric_on_labels_says_so_where_only_counts_are_stored():
    with pytest.raises(PluginError, match=r"metric 'mine' .* needs the label of every sample"):
        metric_of(share_right).function(EvaluationRecord(("a", "b"), counts=np.eye(2, dtype=np.int64)))


def test_an_error_inside_a_metric_keeps_its_type_and_names_the_metric():
    with pytest.raises(ZeroDivisionError) as caught:
        metric_of(lambda y_true, y_pred: 1 / 0).function(EVIDENCE)
    assert "metric 'mine' (mine.py)" in caught.value.__notes__[0]
