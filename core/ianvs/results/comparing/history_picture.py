"""A history as a picture: a line for each row, from one workspace to the next."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ianvs.base.errors import IanvsError
from ianvs.results.comparing.history import History, HistoryLine
from ianvs.store import write_atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_history", "history_figure"]

_WIDTH = 7.2  # inches
_HEIGHT = 3.2  # of one exam
_COLOURS = tuple(f"C{n}" for n in range(10))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_STYLES = ("-", "--", ":", "-.")


def draw_history(history: History, path: Path) -> Path:
    """Write it to `path`, .png or .svg; the same history makes the same bytes. Raises IanvsError for another suffix."""
    if path.suffix not in (".png", ".svg"):
        raise IanvsError(f"'{path}' is no name of a picture that can be drawn: end it in .png or .svg.")
    from matplotlib import rc_context

    stream = io.BytesIO()
    with rc_context({"svg.hashsalt": "ianvs", "svg.fonttype": "none"}):  # ids that do not change; text stays text
        unwritten = {".svg": ("Date", "Creator"), ".png": ("Software",)}[path.suffix]  # which would change the bytes
        history_figure(history).savefig(stream, format=path.suffix[1:], metadata=dict.fromkeys(unwritten))
    write_atomic(path, stream.getvalue())
    return path


def history_figure(history: History) -> Figure:
    """Exams below each other; no two lines of an exam look the same. Bars are standard deviations over seeds."""
    from matplotlib.figure import Figure

    exams = list(dict.fromkeys(line.testenv for line in history.lines))
    most = max(sum(line.testenv == exam for line in history.lines) for exam in exams)
    figure = Figure(figsize=(_WIDTH, len(exams) * (_HEIGHT + 0.1 * most)), dpi=120, layout="constrained")
    for axes, exam in zip(figure.subplots(len(exams), squeeze=False)[:, 0], exams, strict=True):
        _draw(axes, history, [line for line in history.lines if line.testenv == exam], exam)
    return figure


def _draw(axes: Axes, history: History, lines: Sequence[HistoryLine], exam: str) -> None:
    for number, line in enumerate(lines):
        there = [(at, v.mean, v.std or 0.0) for at, v in enumerate(line.values) if v is not None and v.mean is not None]
        axes.errorbar(
            [at for at, _, _ in there],
            [mean for _, mean, _ in there],
            [std for _, _, std in there],
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],  # another one beside each colour: some see few colours
            linestyle=_STYLES[number // (len(_COLOURS) * len(_MARKERS)) % len(_STYLES)],
            markersize=5,
            capsize=2,
            linewidth=1.4,
            label=f"{line.algorithm} {line.settings}".strip(),
        )
    slanted = sum(len(point.label) for point in history.points) > 60
    labels = [point.label for point in history.points]
    axes.set_xticks(range(len(labels)), labels, rotation=35 if slanted else 0, ha="right" if slanted else "center")
    axes.set_xlim(-0.3, len(labels) - 0.7)
    better = {True: ", higher is better", False: ", lower is better", None: ""}[history.higher_is_better]
    axes.set_ylabel(f"{history.metric}{better}")
    axes.set_title(exam or f"{history.metric} over {'commits' if history.by_commit else 'time'}", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
