"""A page for each row, beside report.html: the settings, curves, matrices and end of the log of each of its cases."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from ianvs.results.report.row_scores import StreamLine
from ianvs.results.report.training_curves import TrainingCurves
from ianvs.results.report.values import cell_text, shown_hyperparameters, slug
from ianvs.store import CaseStore

FOLDER = "cases"
_MAX_ROWS = 200


def case_files(leaderboard: Leaderboard) -> dict[RowKey, str]:
    """Return the page of each of the first rows, relative to report.html."""
    keys = [(row.id, row.algorithm) for row in leaderboard.rows[:_MAX_ROWS] if row.seeds or row.failures]
    return {key: f"{FOLDER}/{slug(key[1])}-{slug(key[0][:12])}.html" for key in keys}


def write_case_pages(
    leaderboard: Leaderboard,
    shown: Mapping[RowKey, ShownRow],
    results_of: Callable[[Collection[RowKey]], Iterable[CaseResult]],
    folder: Path,
    render: Callable[..., str],
) -> None:
    """Write pages whose cases changed since the last write.

    Args:
        leaderboard: Its first rows have pages.
        shown: The rows in charts.
        results_of: Returns the results of some rows.
        folder: Where report.html is.
        render: Fills the template.
    """
    files, names = case_files(leaderboard), leaderboard.row_names
    cases: dict[RowKey, list[CaseResult]] = {}
    for result in results_of(files):
        key = (result.case.row, result.case.algorithm)
        if result.status != "unfinished":
            cases.setdefault(key, []).append(result)
    for key, row_results in cases.items():
        path = folder / files[key]
        if path.exists() and all(path.stat().st_mtime > last_modified(case.directory) for case in row_results):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = [_template_data(f"c{n}", case, shown.get(key)) for n, case in enumerate(row_results)]
        path.write_text(render(name=names[key], cases=facts), encoding="utf-8")


def last_modified(folder: Path) -> float:
    """Return the modification time of a case's folder; inf if there is none."""
    return folder.stat().st_mtime if folder.exists() else math.inf


def _template_data(key: str, result: CaseResult, row: ShownRow | None) -> dict[str, object]:
    store = CaseStore(result.directory.parents[1])
    log = result.failure.log if result.failure and result.failure.log else store.log(result.case.id)
    heatmaps = [
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
        "maps": heatmaps,
        "log": log_tail(log),
    }


def _curves(key: str, result: CaseResult, row: ShownRow) -> Sequence[tuple[str, Markup]]:
    """Return charts of the training curves that the learner reported."""
    curves = TrainingCurves()
    curves.add(row.key, result)
    ends = np.arange(1, len(result.rounds))
    by_quantity = [(name, {row.key: StreamLine(*lines[row.key])}) for name, lines in curves.lines()]
    charts = [
        (name, stream_chart(f"{key}t{n}", [row], streams, ends, name, name, "rounds"))
        for n, (name, streams) in enumerate(by_quantity)
    ]
    return [(name, svg) for name, svg in charts if svg]
