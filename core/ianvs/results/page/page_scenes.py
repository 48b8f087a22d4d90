"""Segmentation in the page: what is seen, what is true, and what was predicted after each round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult
from ianvs.results.report.charts.heatmaps import png_uri
from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.scenes import scene_sheet

__all__ = ["PageScenes", "Scenes"]

_SIDE = 160  # pixels, the longer side of a picture in the page
_MOST_ROWS = 16
_MOST_TESTS = 6


@dataclass(frozen=True)
class PageScenes:
    """What one row saw and said. lines: test set, and (head, data URI) of its pictures. legend: as of a SceneSheet."""

    label: str
    seed: int
    lines: Sequence[tuple[str, Sequence[tuple[str, str]]]]
    legend: Sequence[tuple[str, str]]


class Scenes:
    """Takes results one after the other; of each row those of the first seed, as the pictures beside the page show."""

    def __init__(self, rows: Sequence[ShownRow]) -> None:
        self._rows = {one.key: one for one in rows[:_MOST_ROWS]}
        self.sheets: dict[RowKey, PageScenes] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        one = self._rows.get(key)
        if one is None or result.case.seed != one.row.seeds[0] or (found := scene_sheet(result, _MOST_TESTS)) is None:
            return
        lines = [
            (test, [(head, png_uri(_small(head, cell))) for head, cell in cells.items()]) for test, cells in found.lines
        ]
        self.sheets[key] = PageScenes(one.label, result.case.seed, lines, found.legend)


def _small(head: str, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """At most `_SIDE` pixels. Of labels every n-th: there is no colour between two classes."""
    if head != "input":
        step = -(-max(pixels.shape) // _SIDE)
        return pixels[::step, ::step]
    from PIL import Image

    picture = Image.fromarray(pixels)
    picture.thumbnail((_SIDE, _SIDE))
    return np.asarray(picture)
