"""Pages beside report.html, one for each row: of each of its cases settings, curves, matrices, and the log's end."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from ianvs.base.types import CaseResult
from ianvs.results.page.page_table import log_tail
from ianvs.results.report.charts.heatmaps import heatmap_svg, limits
from ianvs.results.report.charts.lines import stream_chart
from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_names import row_names
from ianvs.results.report.row_scores import StreamLine
from ianvs.results.report.training_curves import TrainingCurves
from ianvs.results.report.values import cell_text, shown_hyperparameters, slug
from ianvs.store import CaseStore

FOLDER = "cases"
_MOST = 200  # rows


def case_files(leaderboard: Leaderboard) -> dict[RowKey, str]:
    """The file of each row that has a page, relative to report.html: those that stand first."""
    keys = [(row.id, row.algorithm) for row in leaderboard.rows[:_MOST] if row.seeds or row.failures]
    return {key: f"{FOLDER}/{slug(key[1])}-{slug(key[0][:12])}.html" for key in keys}


def write_case_pages(
    leaderboard: Leaderboard,
    shown: Mapping[RowKey, ShownRow],
    results: Iterable[CaseResult],
    folder: Path,
    render: Callable[..., str],
) -> None:
    """Write those of which a case has changed since. shown: the rows that are drawn. render: of a template's facts."""
    files, names = case_files(leaderboard), row_names(leaderboard.rows)
    cases: dict[RowKey, list[CaseResult]] = {}
    for result in results:
        key = (result.case.row, result.case.algorithm)
        if key in files and result.status != "unfinished":
            cases.setdefault(key, []).append(result)
    for key, row_results in cases.items():
        path = folder / files[key]
        if path.exists() and all(path.stat().st_mtime > changed(case.directory) for case in row_results):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = [_facts(f"c{n}", case, shown.get(key)) for n, case in enumerate(row_results)]
        path.write_text(render(name=names[key], cases=facts), encoding="utf-8")


def changed(folder: Path) -> float:
    """When anything was put into the folder of a case; inf where there is none."""
    return folder.stat().st_mtime if folder.exists() else math.inf


def _facts(key: str, result: CaseResult, row: ShownRow | None) -> dict[str, object]:
    store = CaseStore(result.directory.parents[1])
    log = result.failure.log if result.failure and result.failure.log else store.log(result.case.id)
    maps = [
        (score, heatmap_svg(f"{key}m{n}", matrix.values, matrix.rounds, matrix.tests, score, limits(matrix.values)))
        for n, (score, matrix) in enumerate(result.matrices.items())
        if matrix.values.size and not np.isnan(matrix.values).all()
    ]
    return {
        "seed": result.case.seed,
        "id": result.case.id,
        "status": result.status,
        "scores": [(name, f"{value:.4g}") for name, value in result.metrics.items() if value is not None],
        "settings": [
            (name, cell_text(value)) for name, value in shown_hyperparameters(result.case.hyperparameters).items()
        ],
        "curves": _curves(key, result, row) if row else [],
        "maps": maps,
        "log": log_tail(log),
    }


def _curves(key: str, result: CaseResult, row: ShownRow) -> Sequence[tuple[str, Markup]]:
    """What the learner told while it was trained."""
    curves = TrainingCurves()
    curves.add(row.key, result)
    ends = np.arange(1, len(result.rounds))
    by_quantity = [(name, {row.key: StreamLine(*lines[row.key])}) for name, lines in curves.lines()]
    drawn = [
        (name, stream_chart(f"{key}t{n}", [row], streams, ends, name, name, "rounds"))
        for n, (name, streams) in enumerate(by_quantity)
    ]
    return [(name, svg) for name, svg in drawn if svg]
