"""Heatmaps of score matrices: rounds down, test sets across."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult, ScoreMatrix
from ianvs.results.report.layout import row_name
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow, RowKey
from ianvs.results.report.picture_drawing import Picture
from ianvs.results.report.row_scores import MatrixMeans, RowScore
from ianvs.results.report.values import fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["RowKey", "complete_rows", "finished", "heatmap", "heatmaps", "limits", "slug"]

_CELL = (0.62, 0.42)  # inches
_DPI = 120
_LONGEST_LABEL = 22
_LONGEST_FLAT = 8  # characters that fit below a cell
_SCALE = "YlGnBu"
_WHITE_INK = 0.55  # from this part of the scale on, white is easier to read than black


def complete_rows(leaderboard: Leaderboard) -> dict[RowKey, LeaderboardRow]:
    """The rows that pictures are made of: those that lack no case."""
    return {(row.id, row.algorithm): row for row in leaderboard.rows if row.complete}


def finished(
    rows: Mapping[RowKey, LeaderboardRow], results: Iterable[CaseResult]
) -> Iterator[tuple[RowKey, CaseResult]]:
    """The results that `rows` report, each with the key of its row: not of seeds that only chose a configuration."""
    for result in results:
        key = (result.case.row, result.case.algorithm)
        if key in rows and result.status == "finished" and result.case.seed in rows[key].seeds:
            yield key, result


def heatmaps(leaderboard: Leaderboard, results: Iterable[CaseResult], folder: Path) -> Iterator[Picture]:
    """One per complete row and score, in the rows' order: the mean score matrix over seeds.

    What is not evaluated in one seed is blank in the mean.
    """
    rows = complete_rows(leaderboard)
    means = MatrixMeans(rows)
    for key, result in finished(rows, results):
        means.add(key, result)
    for key, row in rows.items():
        for found in means.of_scores.values():
            if key in found:
                yield _picture(found[key], row, folder)


def heatmap(matrix: ScoreMatrix | RowScore, title: str, subtitle: str = "") -> Figure:
    """A figure of `matrix`: values in the cells, the untrained model on top, what a round has just taught framed."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    rows, columns = matrix.values.shape
    low, high = limits(matrix.values)
    width = columns * _CELL[0] + 2.9
    subtitle = textwrap.fill(subtitle, width=max(44, int(width * 13)))
    height = rows * _CELL[1] + 1.7 + 0.16 * subtitle.count("\n")
    figure = Figure(figsize=(max(width, 4.8), height), dpi=_DPI, layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    scale = colormaps[_SCALE].with_extremes(bad="#eeeeee")
    image = axes.imshow(np.ma.masked_invalid(matrix.values), cmap=scale, vmin=low, vmax=high, aspect="auto")
    for (k, j), value in np.ndenumerate(matrix.values):
        known = bool(np.isfinite(value))
        ink = "white" if known and (value - low) / (high - low) > _WHITE_INK else "#222222"
        axes.text(j, k, _number(value) if known else "–", ha="center", va="center", fontsize=9, color=ink)
    _draw_grid(axes, rows, columns)
    if columns == rows - 1 and columns > 1:
        for j in range(columns):
            axes.add_patch(
                Rectangle(
                    (j - 0.5, j + 0.5), 1, 1, fill=False, edgecolor="#f28e2b", linewidth=2, zorder=3, clip_on=False
                )
            )
    slanted = any(len(name) > _LONGEST_FLAT for name in matrix.tests)
    labels = [fit(name, _LONGEST_LABEL) for name in matrix.tests]
    axes.set_xticks(range(columns), labels, rotation=35 if slanted else 0, ha="right" if slanted else "center")
    axes.set_yticks(
        range(rows), ["untrained", *(f"{k}. {fit(name, _LONGEST_LABEL)}" for k, name in enumerate(matrix.rounds, 1))]
    )
    axes.tick_params(length=0, labelsize=9)
    axes.set_xlabel("test set")
    axes.set_ylabel("after round")
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize=8)
    lines = subtitle.count("\n") + 1 if subtitle else 0
    axes.set_title(title, fontsize=12, fontweight="bold", pad=8 + 13 * lines)
    axes.annotate(
        subtitle,
        (0.5, 1),
        xytext=(0, 6),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=9,
        color="#555555",
    )
    return figure


def _draw_grid(axes: Axes, rows: int, columns: int) -> None:
    """White lines between the cells, a wider one below the untrained model, which no round has taught."""
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)
    axes.axhline(0.5, color="white", linewidth=4, zorder=2)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _picture(matrix: RowScore, row: LeaderboardRow, folder: Path) -> Picture:
    path = folder / f"{slug(row.algorithm)}-{slug(row.id[:8])}-{slug(matrix.score)}.png"
    seeds = f"mean of {row.expected} seeds" if row.expected > 1 else f"seed {row.seeds[0]}"
    title = f"{row_name(row)}: {matrix.score}" + (" (bound)" if row.bound else "")
    subtitle = ", ".join(filter(None, (row.settings(), seeds)))
    inputs = (title, subtitle, *matrix.rounds, "/", *matrix.tests, matrix.values.tobytes().hex())
    return Picture(path, inputs, heatmap, (matrix, title, subtitle))


def limits(values: NDArray[np.float64]) -> tuple[float, float]:
    """Range of the colours: 0 to 1 for scores, so that pictures compare; else from the lowest to the highest value."""
    known = values[np.isfinite(values)]
    if known.size == 0 or (known.min() >= 0 and known.max() <= 1):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _number(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.3g}"


def slug(name: str) -> str:
    """`name` with only what every file system takes."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:60] or "unnamed"
