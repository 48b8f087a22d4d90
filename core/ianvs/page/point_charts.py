"""Rows as points: stability against plasticity, and score against what it costs, with the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ianvs.page.axes import Frame, log_scale, nice_scale
from ianvs.page.shown_rows import ShownRow
from ianvs.page.svg import dots, figure, fit, num, path, tag, text

__all__ = ["Point", "front", "point_chart"]

_NAMED = 24  # points beside which there is room for names


@dataclass(frozen=True)
class Point:
    one: ShownRow
    x: float
    y: float


def front(points: Sequence[tuple[float, float]], x_up: bool, y_up: bool) -> list[int]:
    """Positions of the points that no other is as good as in both and better than in one, by x from its best end.

    x_up, y_up: whether more is better.
    """
    signed = [(x if x_up else -x, y if y_up else -y) for x, y in points]
    kept = [
        n
        for n, (x, y) in enumerate(signed)
        if not any(a >= x and b >= y and (a, b) != (x, y) for a, b in signed)
    ]
    return sorted(kept, key=lambda n: (-signed[n][0], signed[n][1]))


def point_chart(
    key: str,
    points: Sequence[Point],
    x_name: str,
    y_name: str,
    title: str,
    *,
    x_up: bool,
    y_up: bool,
    log: bool = False,
    with_front: bool = False,
) -> Markup:
    """x_up, y_up: whether more is better. with_front: draw the Pareto front of the rows that compete. log: of x, where
    all are positive. "" without two points."""
    known = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    if len(known) < 2:
        return Markup("")
    xs, ys = [point.x for point in known], [point.y for point in known]
    log = log and min(xs) > 0
    margin = (max(ys) - min(ys)) * 0.06
    wide = (max(xs) - min(xs)) * 0.06
    x_scale = log_scale(xs) if log else nice_scale([*xs, min(xs) - wide, max(xs) + wide])
    frame = Frame(x_scale, nice_scale([*ys, min(ys) - margin, max(ys) + margin]), width=430, height=300)
    parts = [frame.drawn(f"{x_name} ({_better(x_up)})", fit(f"{y_name} ({_better(y_up)})", 60))]
    if with_front:
        parts.append(_front(frame, [point for point in known if point.one.row.competes], x_up, y_up))
    drawn = []
    for point in known:
        said = f"{point.one.label}: {x_name} {point.x:.4g}, {y_name} {point.y:.4g}"
        dot = dots(point.one.style, [frame.at(point.x, point.y)], 5)
        drawn.append(tag("g", dot, class_="series point", data_row=point.one.id, data_tip=said))
    names = _names(frame, known) if len(known) <= _NAMED else []
    about = f"{len(known)} points. The table below the picture holds their numbers."
    return figure(key, *frame.size, title, about, *parts, *drawn, *names, class_="chart")


def _front(frame: Frame, points: Sequence[Point], x_up: bool, y_up: bool) -> Markup:
    """Steps through the points of the front: what lies behind is beaten in both."""
    best = [points[n] for n in front([(point.x, point.y) for point in points], x_up, y_up)]
    corners: list[tuple[float, float]] = []
    # From the end that is best in x: along x at that y until the next one, which is better in y.
    for before, after in zip(best, best[1:], strict=False):
        corners += [frame.at(before.x, before.y), frame.at(after.x, before.y)]
    corners += [frame.at(point.x, point.y) for point in best[-1:]]
    return tag("path", d=path(corners), class_="front") if len(best) > 1 else Markup("")


def _names(frame: Frame, points: Sequence[Point]) -> list[Markup]:
    """Names beside their points, where they cover neither another name nor another point."""
    dots_at = [frame.at(point.x, point.y) for point in points]
    taken: list[tuple[float, float, float, float]] = [(x - 6, y - 6, x + 6, y + 6) for x, y in dots_at]
    named = []
    for point, (x, y) in zip(points, dots_at, strict=True):
        label = fit(point.one.label, 26)
        width = 6.1 * len(label)
        for dx, dy, anchor in ((9, 4, None), (-9, 4, "end"), (0, -10, "middle"), (0, 19, "middle")):
            left = x + dx - (width if anchor == "end" else width / 2 if anchor else 0)
            box = (left, y + dy - 10, left + width, y + dy + 3)
            inside = box[0] > frame.left and box[2] < frame.left + frame.width + 14 and box[1] > 0
            own = (x - 6, y - 6, x + 6, y + 6)
            if inside and not any(_overlap(box, other) for other in taken if other != own):
                taken.append(box)
                # A point that is hidden takes its name with it.
                named.append(
                    tag("g", text(x + dx, y + dy, label, anchor), class_="series label", data_row=point.one.id)
                )
                break
    return named


def _overlap(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _better(up: bool) -> str:
    return "more is better" if up else "less is better"


def rank_bar(low: int, high: int, rank: int, count: int) -> Markup:
    """A rank interval: a bar from `low` to `high` on a line from 1 to `count`, with a dot at the rank itself."""
    width, height = 84.0, 12.0
    step = width / max(count, 1)
    bar = tag("rect", x=(low - 1) * step, y=2, width=(high - low + 1) * step, height=8, rx=3, class_="reach")
    line = tag("path", d=f"M0 6H{num(width)}", class_="axis")
    dot = tag("circle", cx=(rank - 0.5) * step, cy=6, r=3, class_="place")
    said = f"rank {low} to {high} of {count}" if high > low else f"rank {low} of {count}"
    return tag("svg", line, bar, dot, width=width, height=height, viewBox=f"0 0 {num(width)} {num(height)}",
               role="img", aria_label=said, class_="ranks")
