"""All pictures of one exam, in their order, each with its legend and its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from ianvs.results.page.axes import nice_scale
from ianvs.results.page.bar_charts import class_bars_svg, forgetting_panel
from ianvs.results.page.heatmap_group import Heatmaps, heatmaps
from ianvs.results.page.line_charts import curve_chart, interval_chart
from ianvs.results.page.page_numbers import (
    Matrices,
    NumberTable,
    curve_numbers,
    kept_numbers,
    part_numbers,
    point_numbers,
)
from ianvs.results.page.point_charts import Point, point_chart
from ianvs.results.page.shown_rows import ShownRow, series, shown_rows
from ianvs.results.report import Leaderboard
from ianvs.results.report.columns import COSTS
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_scores import MatrixMeans, RowScore

__all__ = ["Chart", "ExamPictures", "exam_pictures"]

_MOST_INTERVALS = 40
_MOST_PANELS = 24
_MOST_BARS = 8  # rows beside each other in bars
_MOST_BAR_CHARTS = 24
_COSTS = (("train_cpu_seconds", "processor seconds of training"), ("peak_memory_mb", "peak memory, MB"))


@dataclass(frozen=True)
class Chart:
    """legend: what can be switched on and off; [] where names stand in the picture."""

    title: str
    svg: Markup
    note: str = ""
    legend: Sequence[Mapping[str, object]] = ()
    numbers: NumberTable | None = None


@dataclass(frozen=True)
class ExamPictures:
    exam: str
    intervals: Chart | None = None
    curves: Sequence[Chart] = ()
    points: Sequence[Chart] = ()
    heatmaps: Sequence[Heatmaps] = ()
    panels: Sequence[tuple[str, Markup]] = ()
    panel_numbers: NumberTable | None = None
    panels_left_out: int = 0
    bars: Sequence[Chart] = field(default_factory=list)


def exam_pictures(
    leaderboard: Leaderboard,
    exam: str,
    number: int,
    exams: int,
    means: MatrixMeans,
    parts: Mapping[tuple[str, str, str], Mapping[RowKey, Mapping[str, float]]],
    matrices: Matrices,
) -> ExamPictures:
    """number: of the exam, which makes ids unique, of `exams`. parts: ianvs.results.report.class_scores."""
    rows = shown_rows(leaderboard, exam)
    scores = {score: found for score in means.of_scores if (found := means.in_order(score, exam))}
    first = next(iter(scores.values()), {})
    base, groups = leaderboard.baseline, exams * max(1, len(means.of_scores))
    panels, panel_numbers, left_out = _panels(f"e{number}f", rows, first)
    return ExamPictures(
        exam,
        intervals=_intervals(f"e{number}i", leaderboard, rows),
        curves=[chart for n, found in enumerate(scores.values()) if (chart := _curves(f"e{number}l{n}", rows, found))],
        points=[*_stability(f"e{number}p", rows, first), *_costs(f"e{number}k", leaderboard, rows)],
        heatmaps=[
            heatmaps(f"e{number}h{n}", rows, found, matrices, base, groups) for n, found in enumerate(scores.values())
        ],
        panels=panels,
        panel_numbers=panel_numbers,
        panels_left_out=left_out,
        bars=_bars(f"e{number}b", exam, rows, parts),
    )


def _intervals(key: str, leaderboard: Leaderboard, rows: Sequence[ShownRow]) -> Chart | None:
    if not leaderboard.sort_by or len(rows) < 2:
        return None
    column, falls = leaderboard.sort_by[0]
    found = {one.id: one.row.intervals[column] for one in rows if column in one.row.intervals}
    intervals = {id_: (interval.low, interval.high) for id_, interval in found.items()}
    seeds = {one.id: one.row.by_seed.get(column, ()) for one in rows} if leaderboard.seeds > 1 else {}
    some = rows[:_MOST_INTERVALS]
    svg = interval_chart(key, some, column, f"{column} of each row", intervals, seeds)
    note = f"{'Higher' if falls else 'Lower'} is better. "
    note += "The bar is the 95 % interval of the mean over seeds, small dots are seeds." if intervals else ""
    note += f" {len(rows) - len(some)} rows are left out." if len(rows) > len(some) else ""
    return Chart(f"{column} and how sure it is", svg, note) if svg else None


def _curves(key: str, rows: Sequence[ShownRow], scores: Mapping[RowKey, RowScore]) -> Chart | None:
    score = next(iter(scores.values())).score
    title = f"Learning: {score} after each round"
    svg = curve_chart(key, rows, scores, title)
    if not svg:
        return None
    note = "Mean over the test sets taught so far. Bands: one standard deviation over seeds to each side."
    shown = [one for one in rows if one.key in scores]
    return Chart(title, svg, note, series(shown), curve_numbers(rows, scores))


def _stability(key: str, rows: Sequence[ShownRow], scores: Mapping[RowKey, RowScore]) -> list[Chart]:
    """A row that learned everything at once has nothing to forget, and is no point."""
    known = [(one, scores[one.key]) for one in rows if one.key in scores]
    points = [Point(one, score.just_learned, score.lost) for one, score in known]
    points = [point for point in points if not math.isnan(point.x + point.y)]
    if len(points) < 2:
        return []
    score = known[0][1]
    x, y = f"mean {score.score} just learned", f"mean loss of {score.score} until the end"
    title = "Stability against plasticity"
    svg = point_chart(key, points, x, y, title, x_up=score.higher_is_better, y_up=False)
    note = "Plasticity: the score on each test set just after its round. Stability: how little of that is lost."
    return [_of_points(title, svg, note, (x, y), points)]


def _of_points(title: str, svg: Markup, note: str, axes: tuple[str, str], points: Sequence[Point]) -> Chart:
    numbers = point_numbers(axes, [(point.one.label, (point.x, point.y)) for point in points])
    return Chart(title, svg, note, series([point.one for point in points], every=True), numbers)


def _costs(key: str, leaderboard: Leaderboard, rows: Sequence[ShownRow]) -> list[Chart]:
    if not leaderboard.sort_by:
        return []
    column, falls = leaderboard.sort_by[0]
    charts = []
    for cost, name in _COSTS:
        points = [
            Point(one, float(spent), float(score))
            for one in rows
            if cost in one.row.costs and (spent := one.row.costs[cost].mean) is not None
            if column in one.row.metrics and (score := one.row.metrics[column].mean) is not None
        ]
        title = f"{column} against {name.partition(',')[0]}"
        up = COSTS[cost].higher_is_better
        svg = point_chart(f"{key}{cost[0]}", points, name, column, title, x_up=up, y_up=falls, of_costs=True)
        if svg:
            note = "The line is the Pareto front: no other competitor is better in both."
            charts.append(_of_points(title, svg, note, (name, column), points))
    return charts


def _panels(
    key: str, rows: Sequence[ShownRow], scores: Mapping[RowKey, RowScore]
) -> tuple[list[tuple[str, Markup]], NumberTable | None, int]:
    known = [one for one in rows if one.key in scores and scores[one.key].per_round and len(scores[one.key].tests) > 1]
    if not known:
        return [], None, 0
    values = [value for one in known for value in scores[one.key].values[1:].ravel().tolist()]
    scale = nice_scale(values, 4, unit=True)
    panels = [
        (one.label, forgetting_panel(f"{key}{one.id}", one, scores[one.key], scale)) for one in known[:_MOST_PANELS]
    ]
    return panels, kept_numbers(known, scores), max(0, len(known) - _MOST_PANELS)


def _bars(
    key: str,
    exam: str,
    rows: Sequence[ShownRow],
    parts: Mapping[tuple[str, str, str], Mapping[RowKey, Mapping[str, float]]],
) -> list[Chart]:
    charts: list[Chart] = []
    for (of, score, test), by_row in parts.items():
        if of != exam or len(charts) == _MOST_BAR_CHARTS:
            continue
        found = {one.id: by_row[one.key] for one in rows if one.key in by_row}
        some = [one for one in rows if one.id in found][:_MOST_BARS]
        title = f"{score} on {test}, after the last round"
        svg = class_bars_svg(f"{key}{len(charts)}", some, {one.id: found[one.id] for one in some}, title)
        note = f"The first {len(some)} of {len(found)} rows; the table has all." if len(some) < len(found) else ""
        if svg:
            charts.append(Chart(title, svg, note, series(some, every=True), part_numbers(rows, found)))
    return charts
