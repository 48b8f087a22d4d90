"""Segmentation in the page: what is seen, what is true, and what was predicted after each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult
from ianvs.results.report.charts.heatmaps import png_uri
from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.scenes import Scene, colours, scenes_of

__all__ = ["SceneLine", "SceneSheet", "Scenes"]

_SIDE = 160  # pixels, the longer side of a picture in the page
_MOST_ROWS = 16
_MOST_TESTS = 6


@dataclass(frozen=True)
class SceneLine:
    """One picture of one test set: (what it is, its data URI) for the input, the truth, and each round."""

    test: str
    pictures: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SceneSheet:
    """What one row saw and said. legend: (class, colour as #rrggbb) of the classes that occur."""

    label: str
    seed: int
    lines: tuple[SceneLine, ...]
    legend: tuple[tuple[str, str], ...]


class Scenes:
    """Takes results one after the other; of each row those of the first seed, as the pictures beside the page show."""

    def __init__(self, rows: Sequence[ShownRow]) -> None:
        self._rows = {one.key: one for one in rows[:_MOST_ROWS]}
        self.sheets: dict[RowKey, SceneSheet] = {}

    def add(self, key: RowKey, result: CaseResult) -> None:
        one = self._rows.get(key)
        if one is None or result.case.seed != one.row.seeds[0] or (found := scenes_of(result)) is None:
            return
        classes, lines = found
        self.sheets[key] = _sheet(one, result.case.seed, classes, lines[:_MOST_TESTS])


def _sheet(one: ShownRow, seed: int, classes: Sequence[str], scenes: Sequence[Scene]) -> SceneSheet:
    palette = colours(len(classes))
    used: set[int] = set()
    lines = []
    for name, x, y, predictions in scenes:
        labelled: Mapping[str, NDArray[np.integer]] = {"truth": y, **predictions}
        pictures = [("input", _photo(x))]
        for head, pixels in labelled.items():
            used.update(np.unique(pixels).tolist())
            pictures.append((head, png_uri(_smaller(pixels).astype(np.uint8), palette)))
        lines.append(SceneLine(name, tuple(pictures)))
    legend = tuple((classes[c], "#" + bytes(palette[c]).hex()) for c in sorted(used) if c < len(classes))
    return SceneSheet(one.label, seed, tuple(lines), legend)


def _photo(x: NDArray[np.integer]) -> str:
    """A picture of at most `_SIDE` pixels; one channel is shown in grey."""
    from PIL import Image

    pixels = np.asarray(x, dtype=np.uint8)
    picture = Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels).convert("RGB")
    picture.thumbnail((_SIDE, _SIDE))
    return png_uri(np.asarray(picture))


def _smaller(pixels: NDArray[np.integer]) -> NDArray[np.integer]:
    """Every n-th label: there is no colour between two classes."""
    step = -(-max(pixels.shape) // _SIDE)
    return pixels[::step, ::step]
