"""The score matrices of one score side by side, as they are and as differences to one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from ianvs.results.page.heatmap_svg import DIVERGING, SEQUENTIAL, colour_bar, heatmap_svg
from ianvs.results.page.page_numbers import Matrices
from ianvs.results.page.shown_rows import ShownRow
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.pictures import limits
from ianvs.results.report.row_scores import RowScore

__all__ = ["Heatmap", "Heatmaps", "heatmaps"]

_MOST_CELLS = 400_000  # of all heatmaps of a page: what a browser opens in a second or two
_MOST_NUMBERED = 12_000  # of them that are drawn with their numbers, each some 250 characters


@dataclass(frozen=True)
class Heatmap:
    """matrix: its id in the page's data, "" where there is no room for its numbers. difference: to the baseline."""

    label: str
    svg: Markup
    difference: Markup | None
    matrix: str


@dataclass(frozen=True)
class Heatmaps:
    score: str
    baseline: str
    scale: Markup
    difference_scale: Markup
    maps: Sequence[Heatmap]
    left_out: int


def heatmaps(
    key: str,
    rows: Sequence[ShownRow],
    scores: Mapping[RowKey, RowScore],
    matrices: Matrices,
    baseline: str | None,
    groups: int,
) -> Heatmaps:
    shown = [one for one in rows if one.key in scores]
    each = max(scores[one.key].values.size for one in shown)
    some = shown[: max(1, _MOST_CELLS // groups // each)]  # those that are ranked first
    numbered = len(some) * each <= _MOST_NUMBERED // groups
    base = next((one for one in shown if one.row.algorithm == baseline), None)
    base = base or next((one for one in shown if one.row.rank is not None), shown[0])
    first = scores[base.key]
    every = np.concatenate([scores[one.key].values.ravel() for one in some])
    scale = limits(every)
    differences = {
        one.id: (found.values - first.values) * (1 if found.higher_is_better else -1)
        for one in some
        if (found := scores[one.key]).values.shape == first.values.shape and one is not base
    }
    far = max((float(np.nanmax(np.abs(d))) for d in differences.values() if not np.isnan(d).all()), default=0.0) or 1.0
    around = (-far, far)
    maps = []
    for one in some:
        found, title = scores[one.key], f"{first.score} of {one.label}"
        about = "Rows: after each round, the untrained model first. Columns: test sets."
        names = (found.rounds, found.tests)
        svg = heatmap_svg(f"{key}{one.id}", found.values, *names, title, about, scale, numbered=numbered)
        difference = None
        if one.id in differences:
            told = f"{title}, less that of {base.label}"
            difference = heatmap_svg(
                f"{key}{one.id}d", differences[one.id], *names, told, about, around, DIVERGING, numbered
            )
        id_ = f"{key}{one.id}"
        maps.append(Heatmap(one.label, svg, difference, id_ if matrices.add(id_, found) else ""))
    return Heatmaps(
        first.score,
        base.label,
        colour_bar(f"{key}s", scale, SEQUENTIAL, first.score),
        colour_bar(f"{key}t", around, DIVERGING, f"Difference of {first.score}"),
        maps,
        len(shown) - len(some),
    )
