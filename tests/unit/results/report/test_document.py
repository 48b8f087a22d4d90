"""What a report says, before any view writes it."""

from __future__ import annotations

from dataclasses import replace

from ianvs.results.report.build_document import document_of
from ianvs.results.report.document import text_table
from tests.unit.results.report.report_cases import ACCURACY, board, cells, result, suite


def test_a_ranking_holds_values_beside_texts_and_marks_what_is_best() -> None:
    leaderboard = board(suite(), seeds=2)
    ranking = document_of(leaderboard).ranking
    (accuracy,) = [column for column in ranking.columns if column.title == ACCURACY.name]
    assert [cell.value for cell in accuracy.cells] == cells(leaderboard, ACCURACY.name)
    assert [cell.best for cell in accuracy.cells] == [False, True, False, False, False]  # the first is a bound
    assert [row.mark for row in ranking.rows] == ["bound", "best", "", "", "failed"]
    assert accuracy.align == "right"
    assert accuracy.sort_order == 0


def test_notes_come_by_kind_and_say_of_whom() -> None:
    remarked = [one for one in suite() if one.case.algorithm == "hub"]
    remarked[0] = replace(remarked[0], remark="went well")
    document = document_of(board(remarked, seeds=2))
    [remark] = document.texts("remark")
    assert "hub" in remark and remark.endswith("went well")
    assert document.texts("bound") == []
    assert document.texts("ranked by", "seeds")[1] == "Seeds: 0, 1."


def test_a_short_line_of_a_table_stays_short_and_a_blank_that_is_written_stays() -> None:
    table = text_table("numbers", ["a", "b", "c"], [["1"], ["1", "", ""], ["1", "2", "3"]])
    assert table.lines == [["1"], ["1", "", ""], ["1", "2", "3"]]
    assert [column.texts for column in table.columns] == [["1", "1", "1"], ["", "", "2"], ["", "", "3"]]


def test_rows_that_tie_lead_together():
    def leader(*scores: float) -> str:
        table = board([result(f"m{n}", accuracy=score) for n, score in enumerate(scores)])
        [note] = [note for note in document_of(table).notes if note.kind == "leader"]
        return note.text

    assert leader(0.5, 0.5, 0.25).startswith("m0 and m1 lead with accuracy 0.500;")
    assert leader(0.5, 0.5, 0.5, 0.5).startswith("4 rows lead with accuracy 0.500;")
    assert leader(0.5, 0.5) == "m0 and m1 lead with accuracy 0.500; no other row has a rank."
    assert leader(0.5, 0.25).startswith("m0 leads with accuracy 0.500;")
    assert leader(0.5) == "m0 leads with accuracy 0.500; it is the only row with a rank."


def test_no_value_is_the_best_where_all_are_equal():
    def best(*scores: float) -> list[bool]:
        table = document_of(board([result(f"m{n}", accuracy=score) for n, score in enumerate(scores)])).ranking
        [column] = [column for column in table.columns if column.title == "accuracy"]
        return [cell.best for cell in column.cells]

    assert best(0.5, 0.5, 0.25) == [True, True, False]
    assert best(0.5, 0.5) == [False, False]
