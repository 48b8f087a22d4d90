"""A history as an SVG picture: a line for each row, from one workspace to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from markupsafe import Markup

from ianvs.base.errors import IanvsError
from ianvs.results.comparing.history import History, HistoryLine
from ianvs.results.report.charts.shown_rows import legend_sample
from ianvs.results.report.charts.svg import (
    Frame,
    LineStyle,
    Scale,
    classes,
    dash,
    dots,
    figure,
    line_styles,
    nice_scale,
    num,
    path,
    slanted,
    tag,
    text,
)
from ianvs.results.report.document import Picture
from ianvs.results.report.pictures import grid, standalone
from ianvs.results.report.values import fit
from ianvs.store import write_atomic

_LABEL = 18  # characters
_STEP = 24  # pixels, the least between two workspaces


def draw_history(history: History, file: Path) -> Path:
    """Write it to `file`; the same history makes the same bytes. Raises IanvsError where its suffix is not .svg."""
    if file.suffix != ".svg":
        raise IanvsError(
            f"'{file}' can't be drawn: the name of a picture ends in .svg. rsvg-convert, Inkscape or cairosvg "
            "make PNG or PDF of that."
        )
    write_atomic(file, standalone(history_picture(history)).encode())
    return file


def history_picture(history: History) -> Picture:
    """Exams below each other; a row has one line style in all of them, and no two rows look the same."""
    labels = list(dict.fromkeys(line.label for line in history.lines))
    styles = dict(zip(labels, line_styles(False for _ in labels), strict=True))
    of_exams: dict[str, list[HistoryLine]] = {}
    for line in history.lines:
        of_exams.setdefault(line.testenv, []).append(line)
    charts = [(exam, _chart(f"h{n}", history, lines, styles)) for n, (exam, lines) in enumerate(of_exams.items())]
    title = f"{history.metric} over {'commits' if history.by_commit else 'time'}"
    legend = [{"label": label, "sample": legend_sample(style)} for label, style in styles.items()]
    return Picture(
        "history", title, grid(charts, 1), "Bars are one standard deviation over seeds to each side.", legend
    )


def _chart(key: str, history: History, lines: Sequence[HistoryLine], styles: Mapping[str, LineStyle]) -> Markup:
    known = [
        (
            line,
            [
                (at, v.mean, v.std or 0.0)
                for at, v in enumerate(line.values)
                if v and v.mean is not None and isfinite(v.mean)
            ],
        )
        for line in lines
    ]
    labels = [fit(point.label, _LABEL) for point in history.points]
    width = max(520, _STEP * len(labels))
    aslant = 6.4 * max(map(len, labels)) + 8 > width / len(labels)
    frame = Frame(
        Scale(-0.35, len(labels) - 0.65, ()),
        nice_scale(end for _, there in known for _, mean, std in there for end in (mean - std, mean + std)),
        left=110 if aslant else 52,
        width=width,
    )
    better = {True: ", higher is better", False: ", lower is better", None: ""}[history.higher_is_better]
    parts = [frame.drawn("", fit(f"{history.metric}{better}", 60))]
    foot = frame.top + frame.height
    for at, label in enumerate(labels):
        x = frame.at(at, 0)[0]
        parts.append(slanted(x + 4, foot + 14, label) if aslant else text(x, foot + 18, label, "middle"))
    for line, there in known:
        style = styles[line.label]
        points = [frame.at(at, mean) for at, mean, _ in there]
        ends = [(frame.at(at, mean - std), frame.at(at, mean + std)) for at, mean, std in there if std]
        bars = "".join(f"M{num(x)} {num(low)}V{num(high)}" for (x, low), (_, high) in ends)
        drawn = tag("path", d=path(points), class_=classes("line", style), stroke_dasharray=dash(style))
        spread = tag("path", d=bars, class_=classes("line", style), stroke_width=1)
        parts.append(tag("g", spread, drawn, dots(style, points)))
    about = f"{len(lines)} lines over {len(labels)} workspaces; the table of `ianvs history` holds their numbers."
    return figure(
        key, frame.size[0], foot + 20 + (4.2 * _LABEL if aslant else 6), history.metric, about, *parts, class_="chart"
    )
