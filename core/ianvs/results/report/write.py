"""Writes a leaderboard below a workspace: csv, markdown, LaTeX, pictures. A file changes only when its bytes do."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from ianvs.base.types import CaseResult
from ianvs.config.spec import RankSpec
from ianvs.results.report.columns import table_columns
from ianvs.results.report.latex import latex
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.markdown import markdown
from ianvs.results.report.significance_table import statistics_records
from ianvs.results.report.trials import trials_records
from ianvs.results.report.values import Cell, cell_text
from ianvs.store.files import write_atomic

__all__ = ["csv_text", "write_reports"]


def write_reports(
    leaderboard: Leaderboard,
    results: Iterable[CaseResult],
    rank: RankSpec,
    directory: Path,
    *,
    title: str = "Leaderboard",
    command: str | None = None,
    provenance: Mapping[str, object] | None = None,
) -> tuple[Path, ...]:
    """Write `directory`/rank/: all_rank.csv, selected_rank.csv, statistics.csv, leaderboard.md and .tex, pictures/;
    trials.csv of a search.

    Returns what now is there.
    results: the cases behind the leaderboard; read, once for each kind of picture, only when pictures are asked for,
    by `save_mode` or by the visualization method. selected_rank.csv and the leaderboards show what `rank` selects,
    all_rank.csv everything; `save_mode: selected_only` leaves all_rank.csv out.
    """
    folder = directory / "rank"
    selected = leaderboard.select(rank)
    written: list[Path] = []
    if rank.save_mode != "selected_only":
        written.append(_put(folder / "all_rank.csv", csv_text(leaderboard)))
    written.append(_put(folder / "selected_rank.csv", csv_text(selected)))
    written.append(_put(folder / "statistics.csv", _csv(statistics_records(leaderboard))))
    if leaderboard.studies:
        written.append(_put(folder / "trials.csv", _csv(trials_records(leaderboard.studies))))
    pictures: list[Path] = []
    if rank.save_mode == "selected_and_all_and_picture" or rank.visualization_method == "draw_heatmap_picture":
        from ianvs.results.report.curve_pictures import curves
        from ianvs.results.report.picture_drawing import draw_pictures
        from ianvs.results.report.pictures import heatmaps
        from ianvs.results.report.scenes import class_scores, scenes

        shown = (kind(selected, results, folder / "pictures") for kind in (curves, heatmaps, scenes, class_scores))
        pictures = draw_pictures(chain.from_iterable(shown))
    names = [path.relative_to(folder).as_posix() for path in pictures]
    written.append(_put(folder / "leaderboard.md", markdown(selected, title, command, names, provenance)))
    written.append(_put(folder / "leaderboard.tex", latex(selected, title, command)))
    return (*written, *pictures)


def csv_text(leaderboard: Leaderboard) -> str:
    """Comma-separated, one header line, numbers in the shortest form that reads back as the same number.

    Which columns there are, and under which names, is for the contract of the plugins to say.
    A text that a spreadsheet would take for a formula has a ' before it.
    """
    columns = table_columns(leaderboard.columns, leaderboard.contract)
    cells = ([leaderboard.cell(row, column) for column in columns] for row in leaderboard.rows)
    return _csv([[column.title for column in columns], *cells])


def _csv(lines: Iterable[Sequence[Cell]]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    for line in lines:
        writer.writerow(map(_no_formula, line))
    return stream.getvalue()


def _no_formula(cell: Cell) -> str:
    text = cell_text(cell).replace("\r", "\n")  # the writer leaves a lone carriage return without quotes
    if not isinstance(cell, str) or not text.startswith(("=", "+", "-", "@", "\t", "\n")) or text == "-":
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _put(path: Path, text: str) -> Path:
    write_atomic(path, text.encode())
    return path
