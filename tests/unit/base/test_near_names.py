"""The known name that a misspelt one means, and none where nothing is near."""

import pytest

from ianvs.base.entry_points import installed
from ianvs.base.method_names import ALIASES, built_in, carried
from ianvs.base.near_names import edit_distance, nearest
from ianvs.exam.metrics.registry import find, suggest
from ianvs.plugins.loader import ENTRY_POINTS

METHODS = [*ALIASES, *(key.partition(".")[2] for key, _ in carried()), *installed(ENTRY_POINTS)]


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("", "abc", 3),
        ("abc", "abc", 0),
        ("abc", "acb", 1),
        ("abcd", "abd", 1),
        ("kitten", "sitting", 3),
        ("ca", "abc", 3),
    ],
)
def test_the_distance_of_names(one, other, distance):
    assert edit_distance(one, other) == edit_distance(other, one) == distance


@pytest.mark.parametrize(
    ("name", "choices", "near"),
    [
        ("learning rate", ["learning_rate", "rate"], "learning_rate"),
        ("learning_ratte", ["rate", "learning_rate"], "learning_rate"),
        ("metrisc", ["metrics", "matrix"], "metrics"),
        ("nme", ["name", "start"], "name"),
        ("lrr", ["lr"], "lr"),
        ("ulr", ["url", "name"], "url"),
        ("num_rounds", ["rounds", "runs"], "rounds"),
        ("work", ["workspace", "root"], "workspace"),
        ("tpu", ["auto", "cpu", "cuda"], None),
        ("share", ["scale", "epochs"], None),
        ("xyz", ["xml", "abc"], None),
        ("a", [], None),
    ],
)
def test_a_name_among_few(name, choices, near):
    assert nearest(name, choices) == near


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("HAT", None),
        ("MEMO", None),
        ("PODNet", None),
        ("Online EWC", "EWC"),
        ("oEWC", "EWC"),
        ("GDum", "GDumb"),
        ("icarll", "ICaRL"),
        ("DERP", "DERpp"),
        ("LwF-MC", "LwF"),
    ],
)
def test_a_method_that_there_is_not(name, near):
    assert built_in(name) is None
    assert nearest(name, METHODS) == near


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Acc@1", "accuracy"),
        ("top1", "accuracy"),
        ("Avg", "AA"),
        ("CLEAR_BWT", "CLEAR_backward_transfer"),
        ("CLEAR_FWT", "CLEAR_forward_transfer"),
    ],
)
def test_names_of_metrics_in_papers(name, meant):
    metric = find(name)
    assert metric is not None
    assert metric.name == meant


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("auc", ""),
        ("HAT", ""),
        ("precision", ""),
        ("recall", ""),
        ("loss", ""),
        ("F1-score", "f1"),
        ("last_acc", "last_accuracy"),
        ("forgeting", "forgetting"),
        ("Average Incremental Acc", "average_incremental_accuracy"),
        ("mAP50", "AP50"),
    ],
)
def test_a_metric_that_there_is_not(name, near):
    assert suggest(name) == (f" Did you mean '{near}'?" if near else "")
