"""Scores that yield several numbers: a column for each, in reports too if they are few, and a note if they are many."""

import csv
from dataclasses import replace

from ianvs.results.report.build_document import document_of
from ianvs.results.report.latex import latex
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.row_tables import csv_text
from ianvs.results.stored.score_parts import with_parts
from tests.unit.results.report.report_cases import ACCURACY, board, cells, result

RECALLS = replace(ACCURACY, name="recalls", summary="Recall of each class.")


def leaderboard(*seeds: dict[str, float], sort_by: tuple[tuple[str, bool], ...] = ()) -> Leaderboard:
    results = []
    for seed, parts in enumerate(seeds):
        case = result("replay", seed)
        columns = {f"recalls[{part}]": value for part, value in parts.items()}
        results.append(replace(case, metrics={"accuracy": 0.5, **columns}))
    return board(results, sort_by, len(seeds), [RECALLS, ACCURACY])


def texts(table: Leaderboard) -> list[str]:
    return [str(note) for note in document_of(table).notes]


def titles(table: Leaderboard) -> list[str]:
    return [column.title for column in document_of(table).ranking.columns if column.kind == "metric"]


def test_few_parts_are_columns_of_every_report():
    table = leaderboard({"cat": 0.25, "dog": 0.75}, {"cat": 0.75, "dog": 0.25})
    assert titles(table) == ["recalls[cat]", "recalls[dog]", "accuracy"]
    assert cells(table, "recalls[cat]") == [0.5]
    assert "recalls[cat]" in latex(document_of(table))
    (line,) = csv.DictReader(csv_text(table).splitlines())
    assert "recalls" not in line and float(line["recalls[dog]"]) == 0.5 and "recalls[dog]_std" in line
    [cat] = [column for column in table.columns if column.title == "recalls[cat]"]
    assert cat.meaning == "cat of recalls: Recall of each class."
    assert [text for text in texts(table) if "Recall of" in text] == [
        "recalls: Recall of each class. correct / all. folklore; higher is better"
    ]


def test_many_parts_are_columns_of_the_csv_and_a_note():
    table = leaderboard({f"c{n}": 0.1 * n for n in range(10)})
    assert titles(table) == ["accuracy"]
    assert csv_text(table).count("recalls[") == 20
    assert "recalls has 10 numbers: the columns recalls[c0] to recalls[c9] of all_rank.csv." in texts(table)


def test_a_part_ranks_and_is_shown():
    table = leaderboard({f"c{n}": 0.1 * n for n in range(10)}, sort_by=(("recalls[c3]", True),))
    assert table.sort_by == (("recalls[c3]", True),)
    assert titles(table) == ["recalls[c3]", "accuracy"]


def test_a_score_of_several_numbers_ranks_nothing_and_says_what_to_write():
    for wrong in ("recalls", "recalls[bird]"):
        table = leaderboard({"cat": 0.25, "dog": 0.75}, sort_by=((wrong, True),))
        assert table.sort_by == (("accuracy", True),)
        assert (
            f"sort_by names '{wrong}', and recalls has 2 numbers: it was left out. "
            "Write one of them: recalls[cat], recalls[dog]." in texts(table)
        )


def test_a_part_that_a_seed_lacks_is_said_to_be_missing():
    table = leaderboard({"cat": 0.25, "dog": 0.75}, {"cat": 0.75})
    assert "recalls[dog] is missing in 1 of 2" in table.rows[0].status


def test_a_part_is_the_mean_over_the_test_sets_that_have_it():
    details = {"recalls": [[{"a": 0.0}, None], [{"a": 0.5, "b": None}, {"a": 1.0, "c": 0.25}]]}
    parts = {"recalls[a]": 0.75, "recalls[b]": None, "recalls[c]": 0.25}
    assert with_parts({"recalls": None, "accuracy": 0.5}, details) == {"accuracy": 0.5, **parts}
    assert with_parts({"recalls": 0.5}, details) == {"recalls": 0.5}
    broken_down = {"recalls": [[{"recalls": None, "recalls: a topic": 0.5}]]}
    assert with_parts({"recalls": None}, broken_down) == {"recalls": None}
