"""A score over a hyperparameter: a line for each algorithm and choice of its other hyperparameters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ianvs.results.report.charts.lines import line_with_band, share_scale
from ianvs.results.report.charts.shown_rows import ShownRow, series
from ianvs.results.report.charts.svg import Frame, Scale, figure, line_styles, log_scale, ordinal_scale
from ianvs.results.report.document import Picture
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.values import Value, cell_text, fit, slug

_LOG_FROM = 20.0  # ratio of the largest to the smallest value above which the axis is logarithmic


@dataclass(frozen=True)
class _Line:
    """Rows of one algorithm that differ only in the hyperparameter, in the order of its values."""

    label: str
    rows: tuple[LeaderboardRow, ...]


def varied_hyperparameters(rows: Iterable[LeaderboardRow]) -> list[str]:
    """Return the hyperparameters with two or more values in an algorithm, in the order in which they are written."""
    values: dict[str, dict[str, set[str]]] = {}
    for row in rows:
        for name, value in row.hyperparameters.items():
            values.setdefault(name, {}).setdefault(row.algorithm, set()).add(cell_text(value))
    return [name for name, by_algorithm in values.items() if any(len(texts) > 1 for texts in by_algorithm.values())]


def hyperparameter_chart(rows: Sequence[LeaderboardRow], name: str, metric: str, exam: str = "") -> Picture | None:
    """Return means over seeds with a band of one standard deviation to each side.

    Args:
        rows: Complete rows of one exam.
        name: A hyperparameter.
        metric: A column of metrics or costs.
        exam: The name of the exam, if the job has several.

    Returns:
        None if no algorithm has two values of it.
    """
    lines = _lines(rows, name, metric)
    if not lines:
        return None
    values = sorted({_value(row, name) for line in lines for row in line.rows}, key=_order)
    scale, places = _axis_of(values)
    summaries = [[row.metrics[metric] for row in line.rows] for line in lines]
    means = [
        np.array([np.nan if item.mean is None else item.mean for item in line_summaries])
        for line_summaries in summaries
    ]
    spreads = [np.array([item.std or 0.0 for item in line_summaries]) for line_summaries in summaries]
    heights, unit = share_scale(list(zip(means, spreads, strict=True)))
    frame = Frame(scale, heights, width=620)
    bounds = [all(row.bound for row in line.rows) for line in lines]
    styles = line_styles(zip([line.label for line in lines], bounds, strict=True))
    shown = [
        ShownRow(line.rows[0], (line.rows[0].id, line.label), f"h{n}", line.label, style, True)
        for n, (line, style) in enumerate(zip(lines, styles, strict=True))
    ]
    drawn = []
    for item, line, mean, spread in zip(shown, lines, means, spreads, strict=True):
        at = [places[_value(row, name)] for row in line.rows]
        place_names = [cell_text(_value(row, name)) for row in line.rows]
        drawn.append(line_with_band(frame, item, at, mean, spread, unit, place_names))
    title = f"{metric} over {name}" + (f": {exam}" if exam else "")
    counts = sorted({len(row.seeds) for line in lines for row in line.rows})
    seeds = f"{counts[0]} to {counts[-1]} seeds" if len(counts) > 1 else f"{counts[0]} seed{'s' * (counts[0] > 1)}"
    note = f"Means of {seeds}. Bands: one standard deviation over seeds to each side."
    about = f"{len(lines)} lines over {len(values)} values of {name}."
    svg = figure("h", *frame.size, title, about, frame.axes(name, fit(metric, 60)), *drawn, class_="chart")
    part = f"{slug(exam)}-" if exam else ""
    return Picture(f"{slug(name)}-{part}{slug(metric)}", title, svg, note, series(shown, every=True))


def _lines(rows: Sequence[LeaderboardRow], name: str, metric: str) -> list[_Line]:
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[LeaderboardRow]] = {}
    for row in rows:
        if name in row.hyperparameters and metric in row.metrics:
            others = {key: cell_text(value) for key, value in row.hyperparameters.items() if key != name}
            groups.setdefault((row.algorithm, tuple(sorted(others.items()))), []).append(row)
    several = {key: group for key, group in groups.items() if len({cell_text(_value(row, name)) for row in group}) > 1}
    alike: dict[str, list[dict[str, str]]] = {}
    for algorithm, settings in several:
        alike.setdefault(algorithm, []).append(dict(settings))
    lines = []
    for (algorithm, settings), group in several.items():
        varied = [pair for pair in settings if len({other.get(pair[0]) for other in alike[algorithm]}) > 1]
        label = ", ".join([algorithm, *(f"{key} {value}" for key, value in varied)])
        lines.append(_Line(label, tuple(sorted(group, key=lambda row: _order(_value(row, name))))))
    return lines


def _value(row: LeaderboardRow, name: str) -> Value:
    return row.hyperparameters[name]


def _order(value: Value) -> tuple[int, float, str]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, cell_text(value))  # type: ignore[arg-type]


def _axis_of(values: Sequence[Value]) -> tuple[Scale, dict[Value, float]]:
    """Return the scale of the hyperparameter and the position of each value: numbers by size, others evenly spaced."""
    numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        return ordinal_scale([cell_text(value) for value in values]), {
            value: float(n) for n, value in enumerate(values)
        }
    places = dict(zip(values, numbers, strict=True))
    ticks = tuple((number, cell_text(value)) for value, number in places.items())
    if min(numbers) > 0 and max(numbers) / min(numbers) >= _LOG_FROM:
        wide = log_scale(numbers)
        return Scale(wide.low, wide.high, ticks, log=True), places
    margin = 0.05 * (max(numbers) - min(numbers))
    return Scale(
        min(numbers) - margin, max(numbers) + margin, _without_overlaps(ticks, max(numbers) - min(numbers))
    ), places


def _without_overlaps(ticks: Sequence[tuple[float, str]], span: float) -> tuple[tuple[float, str], ...]:
    """Return the ticks whose labels do not overlap."""
    shown: list[tuple[float, str]] = []
    for at, label in ticks:
        if not shown or at - shown[-1][0] >= span / 14:
            shown.append((at, label))
    return tuple(shown)
