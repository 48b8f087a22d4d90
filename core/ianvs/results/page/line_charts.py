"""Learning curves, and scores with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from ianvs.results.page.axes import Frame, nice_scale, ordinal_scale
from ianvs.results.page.shown_rows import ShownRow
from ianvs.results.page.svg import classes, dash, dots, figure, marker, num, path, tag, text
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_scores import RowScore
from ianvs.results.report.values import fit

__all__ = ["curve_chart", "interval_chart"]

_MARKED = 12  # rounds up to which each is marked; of more, as many


def curve_chart(key: str, rows: Sequence[ShownRow], scores: Mapping[RowKey, RowScore], title: str) -> Markup:
    """The mean score over the test sets taught so far, after each round; the band is one standard deviation to each
    side. "" where no row has more than one round."""
    lines = [(one, scores[one.key]) for one in rows if one.key in scores]
    count = max((len(score.learned) for _, score in lines), default=0)
    if count < 2:
        return Markup("")
    names = next(score.rounds for _, score in lines if len(score.learned) == count)
    reach = [value for _, s in lines for value in (*(s.learned - s.spread), *(s.learned + s.spread))]
    inside = [value for _, score in lines for value in score.learned]
    known = [value for value in inside if not np.isnan(value)]
    unit = bool(known) and min(known) >= 0 and max(known) <= 1
    longest = max(map(len, names))
    labels = [fit(name, 12) for name in names] if count <= 12 and longest <= 12 else [str(k + 1) for k in range(count)]
    frame = Frame(ordinal_scale(labels), nice_scale([0, 1] if unit else reach, unit=unit), width=620)
    drawn = [_line(frame, one, score, unit) for one, score in lines]
    about = f"{len(lines)} lines over {count} rounds. The table below the picture holds their numbers."
    y_name = f"mean {lines[0][1].score} on what was taught so far"
    return figure(key, *frame.size, title, about, frame.drawn("after round", fit(y_name, 60)), *drawn, class_="chart")


def _mean(one: ShownRow, column: str) -> float:
    found = one.row.metrics.get(column)
    return math.nan if found is None or found.mean is None else found.mean


def _line(frame: Frame, one: ShownRow, score: RowScore, unit: bool) -> Markup:
    # A row that learns everything at once stands as a level beside the others, which learn in several rounds.
    count = len(score.learned)
    low, high = score.learned - score.spread, score.learned + score.spread
    if unit:
        low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    places = [float(k) for k in range(count)]
    learned = score.learned
    if count == 1 and frame.x.high > 1:
        places = [0.0, round(frame.x.high - 0.35, 6)]
        low, high, learned = low.repeat(2), high.repeat(2), learned.repeat(2)
    points = [frame.at(x, float(y)) for x, y in zip(places, learned, strict=True)]
    parts = []
    if score.spread.any() and not np.isnan(low).any():
        above = [frame.at(x, float(y)) for x, y in zip(places, high, strict=True)]
        below = [frame.at(x, float(y)) for x, y in zip(places, low, strict=True)]
        parts.append(tag("path", d=path([*above, *below[::-1]]) + "z", class_=classes("band", one.style)))
    parts.append(tag("path", d=path(points), class_=classes("line", one.style), stroke_dasharray=dash(one.style)))
    every = -(-len(points) // _MARKED)
    parts.append(dots(one.style, points[::every]))
    final = f"{one.label}: {learned[0]:.3f} after the first round, {learned[-1]:.3f} after the last"
    return tag("g", *parts, class_=_on(one), data_row=one.id, data_tip=final)


def _on(one: ShownRow) -> str:
    return "series" if one.at_first else "series off"


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
