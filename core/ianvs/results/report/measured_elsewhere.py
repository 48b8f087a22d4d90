"""Handles reports of another program in the report folder: they are kept, and their rows are added with a mark."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ianvs.base.errors import shown_path
from ianvs.base.types import TestCase
from ianvs.results.report.aggregate_cases import RowCases, row_of
from ianvs.results.report.columns import Column, table_columns
from ianvs.results.report.document import Note
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.stats import summarise
from ianvs.store.job_store import foreign_tables, report_folder

MARK = "measured by Ianvs"


def with_measured(board: Leaderboard, folder: Path) -> Leaderboard:
    """Return the leaderboard with the rows that another program wrote into rank/ of the job's `folder`.

    They take no rank.
    """
    if not (tables := foreign_tables(folder)):
        return board
    titles = {column.title.casefold(): column for column in table_columns(board.columns, board.contract)}
    rows = [_row(f"elsewhere {n}", row, titles) for n, row in enumerate(next(iter(tables.values())))]
    text = (
        f"{' and '.join(map(shown_path, tables))} {'is' if len(tables) == 1 else 'are'} of another program, such as "
        f'KubeEdge Ianvs, and left as found; its {len(rows)} rows, marked "{MARK}", can\'t be checked.'
    )
    note = Note("data", text, remedy=f"These reports are in {shown_path(report_folder(folder))}.")
    return replace(board, rows=(*board.rows, *rows), notes=(*board.notes, note))


def _row(id_: str, cells: Mapping[str, str], titles: Mapping[str, Column]) -> LeaderboardRow:
    """Return a row from the cells of columns that the leaderboard has, too."""
    filled = {title.casefold(): text for title, text in cells.items() if text}

    def cells_of(kind: str) -> Iterator[tuple[str, str]]:
        yield from ((titles[at].key, text) for at, text in filled.items() if at in titles and titles[at].kind == kind)

    metrics, texts = {}, {}
    for key, text in cells_of("metric"):
        texts[key] = text
        with suppress(ValueError):
            metrics[key] = summarise([float(text)])
            del texts[key]
    named = filled.get("algorithm", ""), filled.get("paradigm", "")
    case = TestCase(id_, id_, *named, tuple(cells_of("module")), dict(cells_of("hyperparameter")), seed=0)
    urls, row = tuple(filter(None, [filled.get("url")])), row_of(RowCases(case, ""), 0)
    return replace(row, metrics=metrics, texts=texts, status=MARK, time=filled.get("time", ""), urls=urls)
