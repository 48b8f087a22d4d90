"""Learning curves, means over named categories, and scores with their intervals."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

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

_LABEL = 18  # characters of a category's name
_ACROSS = 64  # characters of names below a curve on a phone
_STEP = 24  # minimum distance of two categories, in pixels
_BANDED = 100  # maximum number of lines with bands
_MARKED = 12  # maximum number of marked evaluations


def curve_chart(key: str, rows: Sequence[ShownRow], scores: Mapping[RowKey, RowScore], title: str) -> Markup:
    """Return the mean score over the test sets taught so far, after each round, with a band of one standard deviation.

    "" if no row has more than one round.
    """
    lines = [(row, scores[row.key]) for row in rows if row.key in scores]
    count = max((len(score.learned) for _, score in lines), default=0)
    if count < 2:
        return Markup("")
    names = next(score.rounds for _, score in lines if len(score.learned) == count)
    named = count * max(map(len, names)) <= _ACROSS  # else they would overlap
    labels = list(names) if named else [str(k + 1) for k in range(count)]
    scale, unit = share_scale([(score.learned, score.spread) for _, score in lines])
    frame = Frame(ordinal_scale(labels), scale, width=620)
    drawn = []
    for row, score in lines:
        places, mean, spread = [float(k) for k in range(len(score.learned))], score.learned, score.spread
        place_names = [str(k) for k in range(1, len(mean) + 1)]
        if len(mean) == 1:  # it learned everything at once: a horizontal line beside the curves
            places = [0.0, round(frame.x.high - 0.35, 6)]
            mean, spread, place_names = mean.repeat(2), spread.repeat(2), place_names * 2
        drawn.append(line_with_band(frame, row, places, mean, spread, unit, place_names, len(lines) <= _BANDED))
    about = f"{len(lines)} lines over {count} rounds. The table below the image holds their numbers."
    y_name = f"mean {lines[0][1].score} on what was taught so far"
    return figure(
        key,
        *frame.size,
        title,
        about,
        frame.axes("after round", fit(y_name, 60)),
        *drawn,
        class_="chart",
        data_across="after round",
    )


def stream_chart(
    key: str,
    rows: Sequence[ShownRow],
    lines: Mapping[RowKey, StreamLine],
    ends: NDArray[np.int64],
    score: str,
    title: str,
    across: str = "training samples so far (upright lines: ends of rounds)",
) -> Markup:
    """Return the mean score on what has begun to arrive over the training samples so far, or over `across`.

    ends: where rounds end. "" if no row was evaluated twice.
    """
    shown = [(row, lines[row.key]) for row in rows if row.key in lines]
    if max((len(line.samples) for _, line in shown), default=0) < 2:
        return Markup("")
    scale, unit = share_scale([(line.mean, line.spread) for _, line in shown])
    frame = Frame(nice_scale([0.0, *(float(at) for _, line in shown for at in line.samples)]), scale, width=620)
    foot = frame.top + frame.height
    upright = [
        tag("path", d=f"M{num(frame.at(end, 0)[0])} {num(frame.top)}V{num(foot)}", class_="grid") for end in ends
    ]
    drawn = []
    for row, line in shown:
        place_names = [f"{at:.4g}" for at in line.samples.tolist()]
        drawn.append(
            line_with_band(
                frame, row, line.samples.tolist(), line.mean, line.spread, unit, place_names, len(shown) <= _BANDED
            )
        )
    about = f"{len(shown)} lines. Upright lines are ends of rounds."
    axes = frame.axes(across, fit(score, 60))
    return figure(
        key,
        *frame.size,
        title,
        about,
        axes,
        tag("g", *upright, class_="axes"),
        *drawn,
        class_="chart",
        data_across="at",
    )


def share_scale(lines: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> tuple[Scale, bool]:
    """Return the scale of lines (means, spreads), and whether all of them are shares, which are shown from 0 to 1."""
    values = [value for mean, _ in lines for value in mean if not np.isnan(value)]
    if values and min(values) >= 0 and max(values) <= 1:
        return nice_scale([0, 1], unit=True), True
    return nice_scale(value for mean, spread in lines for value in (*(mean - spread), *(mean + spread))), False


def line_with_band(
    frame: Frame,
    row: ShownRow,
    places: Sequence[float],
    mean: NDArray[np.float64],
    spread: NDArray[np.float64],
    unit: bool,
    place_names: Sequence[str],
    banded: bool = True,
) -> Markup:
    """Draw a line with its band.

    place_names: names of the positions, shown beside the pointer. banded: whether to draw its spread and all marks.
    """
    low, high = mean - spread, mean + spread
    if unit:
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    points = [frame.at(x, float(y)) for x, y in zip(places, mean, strict=True)]
    parts = []
    if banded and spread.any() and not np.isnan(low).any():
        above = [frame.at(x, float(y)) for x, y in zip(places, high, strict=True)]
        below = [frame.at(x, float(y)) for x, y in zip(places, low, strict=True)]
        parts.append(tag("path", d=path([*above, *below[::-1]]) + "z", class_=classes("band", row.style)))
    parts.append(tag("path", d=path(points), class_=classes("line", row.style), stroke_dasharray=dash(row.style)))
    every = -(-len(points) // _MARKED)
    parts.append(dots(row.style, points[::every] if banded else points[-1:]))
    both = zip(place_names, mean.tolist(), strict=True)
    values = "|".join(f"{at}: {value:.4g}" for at, value in both if not math.isnan(value))
    shown = "series" if row.at_first else "series off"
    return tag("g", *parts, class_=shown, data_row=row.id, data_tip="", data_values=values)


def interval_chart(
    key: str,
    rows: Sequence[ShownRow],
    name: str,
    title: str,
    about: str,
    centres: Mapping[str, float],
    margins: Mapping[str, float],
    by_seed: Mapping[str, Sequence[float | None]] = MappingProxyType({}),
    joined: Sequence[tuple[str, str]] = (),
    *,
    zero: bool = False,
) -> Markup:
    """Return a number of each row with its interval, and that of each seed as a small dot.

    centres, margins, by_seed: by id of the shown row. joined: first and last of the rows that a line beside them joins.
    zero: whether 0 is marked.
    """
    shown = [row for row in rows if math.isfinite(centres.get(row.id, math.nan))]
    if not shown:
        return Markup("")
    singles = [value for row in shown for value in by_seed.get(row.id, ()) if value is not None]
    inside = [*(centres[row.id] for row in shown), *singles, *([0.0] if zero else [])]
    ends = [centres[row.id] + sign * margins[row.id] for row in shown if row.id in margins for sign in (-1, 1)]
    if not zero and min(inside) >= 0 and max(inside) <= 1:  # shares are between 0 and 1
        ends = [min(max(end, 0.0), 1.0) for end in ends]
    scale = nice_scale([*inside, *ends], wanted=6)
    tall = 24
    left = 14 + 7.4 * min(34, max(len(row.label) for row in shown))
    # Names and ticks are above the rows, so that a page may cut rows off at the bottom.
    frame = Frame(scale, ordinal_scale(()), left=left, top=46, width=520, height=tall * len(shown))
    bottom = frame.top + frame.height

    def at(value: float) -> float:
        return left + frame.width * min(1.0, max(0.0, scale.part(value)))

    parts = []
    for value, label in scale.ticks:
        parts.append(tag("path", d=f"M{num(at(value))} {num(frame.top)}V{num(bottom)}", class_="grid"))
        parts.append(text(at(value), frame.top - 7, label, "middle"))
    if zero:
        parts.append(tag("path", d=f"M{num(at(0))} {num(frame.top)}V{num(bottom)}", class_="axis"))
    heights = {row.id: frame.top + (n + 0.5) * tall for n, row in enumerate(shown)}
    for row in shown:
        y, centre = heights[row.id], centres[row.id]
        drawn = [text(left - 9, y + 4, fit(row.label, 34), "end")]
        tip = f"{centre:.4g}"
        if row.id in margins:
            a, b = centre - margins[row.id], centre + margins[row.id]
            tip += f", {a:.4g} to {b:.4g}"
            line = f"M{num(at(a))} {num(y)}H{num(at(b))}"
            if scale.low <= a and b <= scale.high:
                line += f"M{num(at(a))} {num(y - 4)}v8M{num(at(b))} {num(y - 4)}v8"
            drawn.append(tag("path", d=line, class_=classes("line", row.style)))
        singles = [value for value in by_seed.get(row.id, ()) if value is not None]
        drawn += [tag("circle", cx=at(value), cy=y, r=2, class_="seed") for value in singles]
        dot = marker(row.style.marker, at(centre), y, 4)
        drawn.append(tag("path", d=dot, class_=classes("dot", row.style)))
        drawn.append(tag("rect", x=left, y=y - tall / 2, width=frame.width, height=tall, class_="reached"))
        shown_first = "series" if row.at_first else "series off"
        parts.append(tag("g", *drawn, class_=shown_first, data_row=row.id, data_tip=tip))
    groups = [(heights[a], heights[b]) for a, b in joined if a in heights and b in heights]
    right = left + frame.width + 10
    lines = [f"M{num(right + 7 * n)} {num(first - 5)}V{num(last + 5)}" for n, (first, last) in enumerate(groups)]
    parts.append(tag("g", *(tag("path", d=line, class_="not-apart") for line in lines), class_="joins"))
    parts.append(text(left + frame.width / 2, 17, name, "middle", class_="name"))
    width = left + frame.width + 20 + 7 * len(groups)
    return figure(key, width, bottom + 4, title, about, *parts, class_="chart", data_step=tall)
