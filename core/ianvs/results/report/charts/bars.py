"""Bars for each class, and what became of each test set."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.charts.svg import Frame, Scale, classes, dots, figure, nice_scale, num, slanted, tag, text
from ianvs.results.report.row_scores import RowScore
from ianvs.results.report.values import fit

_PLACES = 50


def class_bars_svg(
    key: str, rows: Sequence[ShownRow], bars: Mapping[str, Mapping[str, float]], title: str, most: int | None = None
) -> Markup:
    """Parts (classes) across, in each a bar for each row. bars: by id of the shown row, by part. most: parts shown."""
    shown = [one for one in rows if one.id in bars]
    names = list(dict.fromkeys(part for one in shown for part in bars[one.id]))[:most]
    if not shown or not names:
        return Markup("")
    values = [value for one in shown for part, value in bars[one.id].items() if part in names]
    scale = nice_scale([0, *values], unit=True)
    each = max(4.0, min(11.0, 300 / len(shown) / 3))
    group = each * len(shown) + 8
    aslant = any(len(name) * 6.2 > group for name in names)
    ticks: Scale = Scale(0, len(names), ())
    frame = Frame(ticks, scale, left=46, width=max(260.0, group * len(names)), height=170)
    parts = [frame.drawn("", "")]
    step = frame.width / len(names)
    base = frame.at(0, max(0.0, scale.low))[1]
    foot = frame.top + frame.height
    for n, one in enumerate(shown):
        drawn = []
        for place, name in enumerate(names):
            value = bars[one.id].get(name, math.nan)
            if math.isnan(value):
                continue
            x = frame.left + place * step + (step - each * len(shown)) / 2 + n * each
            _, y = frame.at(0, value)
            said = f"{one.label}, {name}: {value:.3f}"
            bar = tag("rect", x=x, y=min(y, base), width=each - 0.8, height=abs(base - y), data_tip=said)
            drawn.append(bar)
        parts.append(tag("g", *drawn, class_=classes("series bar", one.style), data_row=one.id))
    for place, name in enumerate(names):
        x = frame.left + (place + 0.5) * step
        parts.append(slanted(x + 4, foot + 14, fit(name, 16)) if aslant else text(x, foot + 16, name, "middle"))
    more = 20 + (4.2 * min(16, max(map(len, names))) if aslant else 6)
    width = frame.left + frame.width + 10
    about = f"{len(shown)} bars for each of {len(names)} parts. The table below the picture holds their numbers."
    return figure(key, width, foot + more, title, about, *parts, class_="chart")


def forgetting_panel(key: str, one: ShownRow, score: RowScore, scale: Scale) -> Markup:
    """For each test set a line from its score just after its round (an open circle) to that at the end (its marker)."""
    count = min(len(score.tests), _PLACES)
    frame = Frame(Scale(-0.5, count - 0.5, ()), scale, left=38, top=8, width=max(120, min(300, 26 * count)), height=110)
    foot = frame.top + frame.height
    parts = [frame.drawn("", "")]
    ends = []
    for j in range(count):
        before, after = float(score.values[j + 1, j]), float(score.values[-1, j])
        x, y1 = frame.at(j, before)
        _, y2 = frame.at(j, after)
        said = f"{score.tests[j]}: {before:.3f} just learned, {after:.3f} at the end"
        if not (math.isnan(y1) or math.isnan(y2)):
            line = tag("path", d=f"M{num(x)} {num(y1)}V{num(y2)}", class_=classes("line", one.style))
            ring = tag("circle", cx=x, cy=y1, r=3, class_=classes("ring", one.style))
            parts.append(tag("g", line, ring, data_tip=said))
            ends.append((x, y2))
        if count <= 12 or j % math.ceil(count / 10) == 0:
            parts.append(text(x, foot + 16, str(j + 1), "middle"))
    parts.append(dots(one.style, ends, 3))
    title = f"{one.label}: {score.score} of each test set, just learned and at the end"
    about = "An open circle is the score just after the test set's round, the mark that after the last round."
    return figure(key, frame.left + frame.width + 8, foot + 22, title, about, *parts, class_="chart small")
