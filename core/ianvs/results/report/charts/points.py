"""Rows as points: stability against plasticity, and score against cost, with the Pareto front."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.charts.svg import Frame, Scale, dots, figure, log_scale, nice_scale, num, path, tag, text
from ianvs.results.report.values import fit
from ianvs.results.stats.standing import pareto_front

# Candidate positions of a name: its distance from the point, and which end of it is there.
_BESIDE = (
    (9, 4, None),
    (-9, 4, "end"),
    (0, -10, "middle"),
    (0, 19, "middle"),
    (8, -8, None),
    (-8, -8, "end"),
    (-8, 16, "end"),
    (8, 16, None),
)
_NAMED = 24  # maximum number of points with names


@dataclass(frozen=True)
class Point:
    shown: ShownRow
    x: float
    y: float


def point_chart(
    key: str,
    points: Sequence[Point],
    x_name: str,
    y_name: str,
    title: str,
    *,
    x_up: bool,
    y_up: bool,
    of_costs: bool = False,
) -> Markup:
    """Return rows as points; "" for fewer than two.

    x_up, y_up: whether more is better. of_costs: x is on a logarithmic scale if all values are positive, and the Pareto
    front of the rows that compete is drawn.
    """
    finite = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if len(finite) < 2:
        return Markup("")
    xs, ys = [point.x for point in finite], [point.y for point in finite]
    log = of_costs and min(xs) > 0 and max(xs) > 4 * min(xs)
    frame = Frame(log_scale(xs) if log else _padded_scale(xs), _padded_scale(ys), width=430, height=300)
    parts = [frame.axes(f"{x_name} ({_better(x_up)})", fit(f"{y_name} ({_better(y_up)})", 60))]
    corners = _front(frame, [point for point in finite if point.shown.row.competes], x_up, y_up) if of_costs else []
    if corners:
        parts.append(tag("path", d=path(corners), class_="front"))
    drawn = []
    for point in finite:
        tip = f"{x_name} {point.x:.4g}, {y_name} {point.y:.4g}"
        dot = dots(point.shown.style, [frame.at(point.x, point.y)], 5)
        drawn.append(tag("g", dot, class_="series point", data_row=point.shown.id, data_tip=tip))
    names = _names(frame, finite, corners) if len(finite) <= _NAMED else []
    about = f"{len(finite)} points. The table below the image holds their numbers."
    return figure(key, *frame.size, title, about, *parts, *drawn, *names, class_="chart")


def _padded_scale(values: Sequence[float]) -> Scale:
    """Return a scale with a margin around `values`; below 0 only if values are, and shares stay within 0 and 1."""
    room = (max(values) - min(values)) * 0.06
    low, high = min(values) - room, max(values) + room
    if min(values) >= 0:
        low, high = max(0.0, low), min(1.0, high) if max(values) <= 1 else high
    return nice_scale([low, high])


def _front(frame: Frame, points: Sequence[Point], x_up: bool, y_up: bool) -> list[tuple[float, float]]:
    """Return the steps through the points of the front; [] if one point dominates all."""
    xs, ys = (
        np.array([getattr(point, axis) for point in points]) * (1 if up else -1)
        for axis, up in (("x", x_up), ("y", y_up))
    )
    front = pareto_front(ys, ys[:, None] > ys, -xs[:, None]) if points else []
    best = [points[n] for n in sorted(front, key=lambda n: (-xs[n], -ys[n]))]
    corners: list[tuple[float, float]] = []
    # Starting at the best x: along x at constant y until the next point, which is better in y.
    for before, after in pairwise(best):
        corners += [frame.at(before.x, before.y), frame.at(after.x, before.y)]
    corners += [frame.at(point.x, point.y) for point in best[-1:]]
    return corners if len(best) > 1 else []


def _names(frame: Frame, points: Sequence[Point], corners: Sequence[tuple[float, float]]) -> list[Markup]:
    """Return names beside their points where they cover no other name, no point and no part of the front."""
    dots_at = [frame.at(point.x, point.y) for point in points]
    taken: list[tuple[float, float, float, float]] = [(x - 6, y - 6, x + 6, y + 6) for x, y in dots_at]
    taken += [(min(a, c), min(b, d), max(a, c) + 1, max(b, d) + 1) for (a, b), (c, d) in pairwise(corners)]
    named = []
    for point, (x, y) in zip(points, dots_at, strict=True):
        label = fit(point.shown.label, 26)
        width = 6.5 * len(label)
        for dx, dy, anchor in _BESIDE:
            left = x + dx - (width if anchor == "end" else width / 2 if anchor else 0)
            box = (left, y + dy - 10, left + width, y + dy + 3)
            foot = frame.top + frame.height  # the numbers of x are below it
            inside = box[0] > frame.left and box[2] < frame.left + frame.width + 14 and box[1] > 18 and box[3] < foot
            dot_box = (x - 6, y - 6, x + 6, y + 6)
            if inside and not any(_overlap(box, other) for other in taken if other != dot_box):
                taken.append(box)
                # Hiding a point hides its name.
                named.append(
                    tag("g", text(x + dx, y + dy, label, anchor), class_="series label", data_row=point.shown.id)
                )
                break
    return named


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _better(up: bool) -> str:
    return "more is better" if up else "less is better"


def rank_bar(low: int, high: int, rank: int, count: int) -> Markup:
    """Return a rank interval: a bar from `low` to `high` on a line from 1 to `count`, with a dot at the rank."""
    width, height = 84.0, 12.0
    step = width / max(count, 1)
    bar = tag("rect", x=(low - 1) * step, y=2, width=(high - low + 1) * step, height=8, rx=3, class_="reach")
    line = tag("path", d=f"M0 6H{num(width)}", class_="axis")
    dot = tag("circle", cx=(rank - 0.5) * step, cy=6, r=3, class_="place")
    label = f"rank {low} to {high} of {count}" if high > low else f"rank {low} of {count}"
    return tag(
        "svg",
        line,
        bar,
        dot,
        width=width,
        height=height,
        role="img",
        aria_label=label,
        class_="ranks",
    )
