"""Learning curves: how well a learner does on what has begun to arrive, over the samples that have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult, Curve
from ianvs.results.report.layout import varied
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.line_styles import BOUND, LIGHT, line_styles
from ianvs.results.report.picture_drawing import Picture
from ianvs.results.report.pictures import complete_rows, finished, slug

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curve_means", "curves", "learning_curves"]

_WIDTH = 7.2  # inches
_SHAPES = {  # names of markers, as matplotlib calls them
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "up": "^",
    "down": "v",
    "plus": "P",
    "cross": "X",
    "star": "*",
}
_MARKED = 15  # examinations up to which each is marked; of more, about as many

Line = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]  # samples, mean, standard deviation


def curve_means(curve: Curve) -> NDArray[np.float64]:
    """(E,) mean score over the test sets of rounds begun by then; over all asked ones where they belong to none."""
    rounds = int(curve.ended.max(initial=0))
    means = np.full(len(curve.samples), np.nan)
    for e, row in enumerate(curve.scores):
        asked = row[: curve.begun[e]] if len(row) == rounds else row
        known = asked[~np.isnan(asked)]
        if known.size:
            means[e] = known.mean()
    return means


def curves(leaderboard: Leaderboard, results: Iterable[CaseResult], folder: Path) -> Iterator[Picture]:
    """One for each exam, of the first score: a line for each row, the mean over its seeds with their spread."""
    rows = complete_rows(leaderboard)
    found: dict[RowKey, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
    ends: dict[str, NDArray[np.int64]] = {}
    score = ""
    for key, result in finished(rows, results):
        first = next(iter(result.matrices.values()), None)
        if first is None or first.curve is None:
            continue
        score, curve = first.metric, first.curve
        found.setdefault(key, []).append((curve.samples, curve_means(curve)))
        if not rows[key].bound:  # a bound goes over earlier rounds again
            ends.setdefault(rows[key].testenv, curve.samples[np.flatnonzero(np.diff(curve.ended, prepend=0))])
    for testenv in dict.fromkeys(row.testenv for row in rows.values()):
        lines: dict[str, Line] = {}
        for key, row in rows.items():
            if row.testenv == testenv and key in found and (line := _mean_line(found[key])) is not None:
                name = f"{row.algorithm} {row.settings(varied(leaderboard))}".strip()
                lines[f"{name} (bound)" if row.bound else name] = _along(line, ends.get(testenv), row.bound)
        if not lines or max(len(line[0]) for line in lines.values()) < 2:
            continue
        title = f"{score} while learning" + (f": {testenv}" if testenv else "")
        marks = ends.get(testenv, np.empty(0, dtype=np.int64))
        inputs = (title, *(f"{name} {[part.tolist() for part in line]}" for name, line in lines.items()), str(marks))
        path = folder / f"curves-{slug(testenv or score)}.png"
        yield Picture(path, inputs, learning_curves, (lines, marks, score, title))


def learning_curves(lines: Mapping[str, Line], ends: NDArray[np.int64], score: str, title: str) -> Figure:
    """A figure of `lines`; the ends of rounds are upright lines."""
    from matplotlib.figure import Figure

    columns = max(1, min(3, int(_WIDTH / (0.5 + 0.065 * max(map(len, lines))))))
    height = 3.6 + 0.18 * -(-len(lines) // columns)
    figure = Figure(figsize=(_WIDTH, height), dpi=120, layout="constrained")
    axes = figure.subplots()
    for end in ends:
        axes.axvline(end, color="#cccccc", linewidth=1, zorder=0)
    styles = line_styles(name.endswith("(bound)") for name in lines)
    for (name, (samples, mean, spread)), style in zip(lines.items(), styles, strict=True):
        colour = BOUND[0] if style.colour is None else LIGHT[style.colour]
        axes.plot(
            samples,
            mean,
            color=colour,
            linestyle=(0, style.dash) if style.dash else "-",
            marker=_SHAPES[style.marker],
            markersize=4,
            markevery=-(-len(samples) // _MARKED),
            linewidth=1.4,
            label=name,
        )
        axes.fill_between(samples, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("training samples so far (upright lines: ends of rounds)")
    axes.set_ylabel(f"mean {score} on what has begun")
    values = np.concatenate([mean for _, mean, _ in lines.values()])
    if np.nanmin(values) >= 0 and np.nanmax(values) <= 1:
        axes.set_ylim(0, 1.02)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=11, fontweight="bold")
    figure.legend(loc="outside lower center", ncols=columns, fontsize=8, frameon=False, handlelength=3.5)
    return figure


def _mean_line(repetitions: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]]) -> Line | None:
    """Mean and spread over seeds; None where they were not examined at the same places."""
    samples = repetitions[0][0]
    if any(not np.array_equal(samples, other) for other, _ in repetitions):
        return None
    values = np.stack([means for _, means in repetitions])
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    return samples, values.mean(axis=0), spread


def _along(line: Line, ends: NDArray[np.int64] | None, bound: bool) -> Line:
    """A bound's samples count again and again; it is drawn where the others' rounds end."""
    samples, mean, spread = line
    if bound and ends is not None and len(ends) == len(samples):
        return ends, mean, spread
    return line
