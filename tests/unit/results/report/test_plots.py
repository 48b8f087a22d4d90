"""Charts over a hyperparameter: which rows are a line, where values are, and what can't be drawn."""

import re

import pytest

from ianvs.results.report.charts.hyperparameter_chart import hyperparameter_chart, varied_hyperparameters
from ianvs.results.report.pictures import standalone
from tests.unit.results.report.report_cases import board, result


def rows(*settings):
    """Complete rows of two seeds whose accuracy rises with the capacity."""
    found = []
    for n, hyperparameters in enumerate(settings):
        worth = 0.1 * (1 + n)
        found += [result("replay", seed, worth + 0.01 * seed, hyperparameters=hyperparameters) for seed in (0, 1)]
    return board(found, seeds=2).rows


def test_rows_that_differ_in_it_alone_are_a_line_in_the_order_of_values():
    made = rows(*({"capacity": c, "lr": r} for r in (0.1, 0.2) for c in (200, 20, 2000)))
    assert varied_hyperparameters(made) == ["capacity", "lr"]
    chart = hyperparameter_chart(made, "capacity", "accuracy")
    assert [line["label"] for line in chart.legend] == ["replay, lr 0.2", "replay, lr 0.1"]
    values = re.findall(r'data-values="([^"]*)"', chart.drawing)
    assert [[part.split(": ")[0] for part in one.split("|")] for one in values] == [["20", "200", "2000"]] * 2
    assert values[1] == "20: 0.205|200: 0.105|2000: 0.305"
    xs = [float(x) for x in re.findall(r"M([\d.]+) 314v5", chart.drawing)]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)  # powers of ten are equally far apart
    assert chart.drawing.count('class="band') == 2
    assert standalone(chart).startswith("<svg")


def test_values_that_are_no_numbers_stand_side_by_side():
    chart = hyperparameter_chart(rows({"optimizer": "sgd"}, {"optimizer": "adam"}), "optimizer", "accuracy")
    assert ">adam<" in chart.drawing
    assert ">sgd<" in chart.drawing


def test_a_hyperparameter_with_one_value_has_no_chart():
    made = rows({"capacity": 20}, {"capacity": 20, "lr": 1})
    assert varied_hyperparameters(made) == []
    assert hyperparameter_chart(made, "capacity", "accuracy") is None
