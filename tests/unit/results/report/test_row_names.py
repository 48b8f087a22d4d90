"""What rows are called."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from ianvs.results.report.charts.shown_rows import row_styles, shown_rows
from ianvs.results.report.ranking_table import ranking_tables
from ianvs.results.report.row_names import row_names
from tests.unit.results.report.report_cases import board, result


def names(*of: tuple[str, dict[str, Any]]) -> list[str]:
    cases = [result(algorithm, hyperparameters=settings, accuracy=0.5) for algorithm, settings in of]
    return list(row_names(board(cases).rows).values())


def test_a_setting_is_told_only_where_it_tells_rows_apart() -> None:
    of = [("threshold", {"threshold": t, "size": 8}) for t in (0.6, 0.75, 1.0)]
    assert names(*of, ("edge", {"size": 3})) == ["threshold .6", "threshold .75", "threshold 1", "edge"]


def test_of_settings_that_change_together_the_first_is_told() -> None:
    assert names(*(("gd", {"rate": r, "epochs": int(100 * r), "seeded": True}) for r in (0.1, 0.2))) == [
        "gd .1",
        "gd .2",
    ]


def test_several_settings_come_with_their_names() -> None:
    found = names(*(("gd", {"rate": r, "nesterov": n}) for r, n in product((0.1, -0.5), (True, False))))
    assert found[0].split() == ["gd", "rate", ".1,", "nesterov", "True"]
    assert found[-1].split() == ["gd", "rate", "-.5,", "nesterov", "False"]
    assert names(("gd", {"nesterov": True}), ("gd", {"nesterov": False}))[0].split() == ["gd", "nesterov", "True"]


def test_names_differ_whatever_was_set() -> None:
    long = ["x" * 40 + end for end in "ab"]
    found = names(*(("net", {"layers": one}) for one in long), ("ewc 5", {}), ("ewc", {"a": 5}), ("ewc", {"a": 6}))
    assert len(set(found)) == len(found) == 5


def test_a_row_is_called_and_drawn_the_same_in_every_exam() -> None:
    # The order is another in the second exam, and a third method stands in it alone.
    scores = {"a": (("gd", 0.9), ("ewc", 0.8)), "b": (("new", 0.9), ("ewc", 0.8), ("gd", 0.1))}
    cases = [
        replace(one, case=replace(one.case, testenv=exam, id=f"{one.case.id}{exam}", row=f"{one.case.row}{exam}"))
        for exam, of in scores.items()
        for one in (result(name, accuracy=score) for name, score in of)
    ]
    table = board(cases)
    first, second = ({one.label: one.style for one in shown_rows(table, exam)} for exam in scores)
    assert first["gd"] == second["gd"]
    assert first["ewc"] == second["ewc"]
    assert len({(one.colour, one.marker) for one in row_styles(table).values()}) == 3
    exams = [table for table in ranking_tables(table) if table.kind == "exam ranking"]
    assert [[row.id for row in one.rows] for one in exams] == [["r0", "r1"], ["r2", "r3", "r4"]]


def test_rows_of_one_method_share_its_colour_where_colours_are_few_unless_it_is_alone() -> None:
    grid = [result("gd", hyperparameters={"rate": n / 10}, accuracy=0.5) for n in range(1, 4)]
    alone = list(row_styles(board(grid)).values())
    assert alone[0].colour != alone[1].colour
    others = [result(f"ewc{n}", accuracy=0.4) for n in range(7)]
    beside = row_styles(board([*grid, *others]))
    assert beside["gd .1", False].colour == beside["gd .2", False].colour != beside["ewc1", False].colour
    assert beside["gd .1", False].dash != beside["gd .2", False].dash
