"""Learning curves, and scores with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.charts.svg import (
    Frame,
    Scale,
    classes,
    dash,
    dots,
    figure,
    marker,
    nice_scale,
    num,
    ordinal_scale,
    path,
    tag,
    text,
)
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_scores import RowScore, StreamLine
from ianvs.results.report.values import fit

_MARKED = 12  # examinations up to which each is marked; of more, as many


def curve_chart(key: str, rows: Sequence[ShownRow], scores: Mapping[RowKey, RowScore], title: str) -> Markup:
    """The mean score over the test sets taught so far, after each round; the band is one standard deviation to each
    side. "" where no row has more than one round."""
    lines = [(one, scores[one.key]) for one in rows if one.key in scores]
    count = max((len(score.learned) for _, score in lines), default=0)
    if count < 2:
        return Markup("")
    names = next(score.rounds for _, score in lines if len(score.learned) == count)
    longest = max(map(len, names))
    labels = [fit(name, 12) for name in names] if count <= 12 and longest <= 12 else [str(k + 1) for k in range(count)]
    scale, unit = _heights([(score.learned, score.spread) for _, score in lines])
    frame = Frame(ordinal_scale(labels), scale, width=620)
    drawn = []
    for one, score in lines:
        places, mean, spread = [float(k) for k in range(len(score.learned))], score.learned, score.spread
        if len(mean) == 1:  # it learned everything at once: a level beside the others, which learn in several rounds
            places = [0.0, round(frame.x.high - 0.35, 6)]
            mean, spread = mean.repeat(2), spread.repeat(2)
        said = f"{one.label}: {mean[0]:.3f} after the first round, {mean[-1]:.3f} after the last"
        drawn.append(_line(frame, one, places, mean, spread, unit, said))
    about = f"{len(lines)} lines over {count} rounds. The table below the picture holds their numbers."
    y_name = f"mean {lines[0][1].score} on what was taught so far"
    return figure(key, *frame.size, title, about, frame.drawn("after round", fit(y_name, 60)), *drawn, class_="chart")


def stream_chart(
    key: str,
    rows: Sequence[ShownRow],
    lines: Mapping[RowKey, StreamLine],
    ends: NDArray[np.int64],
    score: str,
    title: str,
) -> Markup:
    """The mean score on what has begun to arrive over the training samples so far. ends: where rounds end. "" where no
    row was examined twice."""
    shown = [(one, lines[one.key]) for one in rows if one.key in lines]
    if max((len(line.samples) for _, line in shown), default=0) < 2:
        return Markup("")
    scale, unit = _heights([(line.mean, line.spread) for _, line in shown])
    frame = Frame(nice_scale([0.0, *(float(at) for _, line in shown for at in line.samples)]), scale, width=620)
    foot = frame.top + frame.height
    upright = [
        tag("path", d=f"M{num(frame.at(end, 0)[0])} {num(frame.top)}V{num(foot)}", class_="grid") for end in ends
    ]
    drawn = []
    for one, line in shown:
        said = f"{one.label}: {line.mean[0]:.3f} at first, {line.mean[-1]:.3f} at the end"
        drawn.append(_line(frame, one, line.samples.tolist(), line.mean, line.spread, unit, said))
    about = f"{len(shown)} lines. Upright lines are ends of rounds."
    axes = frame.drawn(
        "training samples so far (upright lines: ends of rounds)", fit(f"mean {score} on what has begun", 60)
    )
    return figure(key, *frame.size, title, about, axes, tag("g", *upright, class_="axes"), *drawn, class_="chart")


def _heights(lines: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[Scale, bool]:
    """The scale of lines with their spread, and whether all of it are shares, which are shown from 0 to 1."""
    known = [value for mean, _ in lines for value in mean if not np.isnan(value)]
    if known and min(known) >= 0 and max(known) <= 1:
        return nice_scale([0, 1], unit=True), True
    return nice_scale(value for mean, spread in lines for value in (*(mean - spread), *(mean + spread))), False


def _line(
    frame: Frame,
    one: ShownRow,
    places: Sequence[float],
    mean: NDArray[np.float64],
    spread: NDArray[np.float64],
    unit: bool,
    said: str,
) -> Markup:
    low, high = mean - spread, mean + spread
    if unit:
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    points = [frame.at(x, float(y)) for x, y in zip(places, mean, strict=True)]
    parts = []
    if spread.any() and not np.isnan(low).any():
        above = [frame.at(x, float(y)) for x, y in zip(places, high, strict=True)]
        below = [frame.at(x, float(y)) for x, y in zip(places, low, strict=True)]
        parts.append(tag("path", d=path([*above, *below[::-1]]) + "z", class_=classes("band", one.style)))
    parts.append(tag("path", d=path(points), class_=classes("line", one.style), stroke_dasharray=dash(one.style)))
    every = -(-len(points) // _MARKED)
    parts.append(dots(one.style, points[::every]))
    return tag("g", *parts, class_="series" if one.at_first else "series off", data_row=one.id, data_tip=said)


def _mean(one: ShownRow, column: str) -> float:
    found = one.row.metrics.get(column)
    return math.nan if found is None or found.mean is None else found.mean


def interval_chart(
    key: str,
    rows: Sequence[ShownRow],
    column: str,
    title: str,
    intervals: Mapping[str, tuple[float, float]],
    by_seed: Mapping[str, Sequence[float | None]],
) -> Markup:
    """The mean of each row with its interval, and the score of each seed as a small dot.

    intervals, by_seed: by id of the shown row.
    """
    shown = [one for one in rows if math.isfinite(_mean(one, column))]
    if not shown:
        return Markup("")
    means = [_mean(one, column) for one in shown]
    singles = [value for one in shown for value in by_seed.get(one.id, ()) if value is not None]
    ends = [end for one in shown for end in intervals.get(one.id, ())]
    low, high = min([*means, *singles]), max([*means, *singles])
    spread = (high - low) or 1.0
    # An interval of few seeds may be wider than everything that was measured: then it ends at the edge.
    ends = [min(max(end, low - spread), high + spread) for end in ends]
    scale = nice_scale([*means, *singles, *ends], wanted=6)
    tall = 24
    left = 14 + 6.6 * min(34, max(len(one.label) for one in shown))
    frame = Frame(scale, ordinal_scale(()), left=left, top=6, width=520, height=tall * len(shown))
    bottom = frame.top + frame.height
    parts = []
    for value, label in scale.ticks:
        x = left + frame.width * scale.part(value)
        parts.append(tag("path", d=f"M{num(x)} {num(frame.top)}V{num(bottom)}", class_="grid"))
        parts.append(text(x, bottom + 17, label, "middle"))
    for n, (one, mean) in enumerate(zip(shown, means, strict=True)):
        y = frame.top + (n + 0.5) * tall
        parts.append(text(left - 9, y + 4, fit(one.label, 34), "end"))
        said = f"{one.label}: {mean:.4g}"
        if one.id in intervals:
            a, b = intervals[one.id]
            said += f", 95 % interval {a:.4g} to {b:.4g}"
            x1, x2 = (left + frame.width * min(1.0, max(0.0, scale.part(end))) for end in (a, b))
            caps = f"M{num(x1)} {num(y - 4)}v8M{num(x2)} {num(y - 4)}v8" if scale.low <= a and b <= scale.high else ""
            parts.append(tag("path", d=f"M{num(x1)} {num(y)}H{num(x2)}{caps}", class_=classes("line", one.style)))
        x = left + frame.width * scale.part(mean)
        seeds = [left + frame.width * scale.part(v) for v in by_seed.get(one.id, ()) if v is not None]
        parts += [tag("circle", cx=at, cy=y, r=2, class_="seed") for at in seeds]
        dot = tag("path", d=marker(one.style.marker, x, y, 4), class_=classes("dot", one.style), data_tip=said)
        parts.append(dot)
    parts.append(text(left + frame.width / 2, bottom + 35, column, "middle", class_="name"))
    about = "Means, 95 % intervals of the mean where there are several seeds, and each seed as a small dot."
    return figure(key, left + frame.width + 16, bottom + 42, title, about, *parts, class_="chart")
