"""Pictures of segmentation: what is seen, what is true, and what is predicted after each round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import Asked, CaseResult
from ianvs.exam.kinds.picture_kind import FIRST, PictureKind
from ianvs.results.report.class_scores import ClassScores
from ianvs.results.report.layout import varied
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.picture_drawing import Picture
from ianvs.results.report.pictures import complete_rows, finished, slug
from ianvs.store import CaseStore, ExamStore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Scene", "class_scores", "colours", "scene_sheet", "scenes", "scenes_of"]

# Name, picture (H, W, 3), truth (H, W), prediction (H, W) by round.
Scene = tuple[str, NDArray[np.integer], NDArray[np.integer], Mapping[str, NDArray[np.integer]]]


def scenes(leaderboard: Leaderboard, results: Iterable[CaseResult], folder: Path) -> Iterator[Picture]:
    """One per complete row: of its first seed, the first picture of each test set through the rounds."""
    rows = complete_rows(leaderboard)
    for key, result in finished(rows, results):
        row = rows[key]
        if result.case.seed != row.seeds[0] or (found := scenes_of(result)) is None:
            continue
        classes, lines = found
        title = f"{row.algorithm}: predictions after each round"
        subtitle = ", ".join(filter(None, (row.settings(), f"seed {result.case.seed}")))
        path = folder / f"{slug(row.algorithm)}-{slug(row.id[:8])}-scenes.png"
        inputs = [title, subtitle, *classes]
        for name, x, y, predictions in lines:
            inputs += [name, *(array.tobytes().hex() for array in (x, y, *predictions.values()))]
        yield Picture(path, tuple(inputs), scene_sheet, (lines, classes, title, subtitle))


def scene_sheet(
    lines: Sequence[Scene],
    classes: Sequence[str],
    title: str,
    subtitle: str = "",
) -> Figure:
    """A figure with a line for each of `lines`. Pixels that are ignored, and predictions of nothing, are black."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    palette = colours(len(classes))
    columns = 2 + max(len(predictions) for *_, predictions in lines)
    height, width = lines[0][2].shape
    tall = 1.7 * height / width
    figure = Figure(figsize=(1.7 * columns + 0.6, (tall + 0.08) * len(lines) + 1.5), dpi=110, layout="constrained")
    grid = figure.subplots(len(lines), columns, squeeze=False)
    used: set[int] = set()
    for number, (axes, (name, x, y, predictions)) in enumerate(zip(grid, lines, strict=True)):
        shown = [("input", x), ("truth", y), *predictions.items()]
        for cell, (head, pixels) in zip(axes, shown, strict=False):
            cell.imshow(pixels if pixels.ndim == 3 else palette[pixels], interpolation="nearest")
            if number == 0:
                cell.set_title(head, fontsize=9)
            used.update(np.unique(pixels).tolist() if pixels.ndim == 2 else ())
        axes[0].set_ylabel(name, fontsize=9)
        for cell in axes:
            cell.set_xticks([])
            cell.set_yticks([])
            for spine in cell.spines.values():
                spine.set_visible(False)
    patches = [Patch(color=palette[c] / 255, label=classes[c]) for c in sorted(used) if c < len(classes)]
    figure.legend(handles=patches, loc="outside lower center", ncols=min(8, len(patches)), fontsize=8, frameon=False)
    figure.suptitle(f"{title}\n{subtitle}" if subtitle else title, fontsize=10)
    return figure


def class_scores(leaderboard: Leaderboard, results: Iterable[CaseResult], folder: Path) -> Iterator[Picture]:
    """One per score of several parts (per class) and test set: a bar for each row, the mean over its seeds."""
    rows = complete_rows(leaderboard)
    found = ClassScores(rows)
    for key, result in finished(rows, results):
        found.add(key, result)
    for (exam, score, test), by_row in found.means().items():
        bars = {
            f"{rows[key].algorithm} {rows[key].settings(varied(leaderboard))}".strip(): by_row[key]
            for key in rows
            if key in by_row
        }
        path = folder / f"{f'{slug(exam)}-' if exam else ''}{slug(score)}-{slug(test)}.png"
        title = f"{score} on {test}, after the last round" + (f" of {exam}" if exam else "")
        yield Picture(path, (title, repr(bars)), class_bars, (bars, title))


def class_bars(bars: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Grouped bars: parts (classes) across, a bar for each name in `bars`."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(part for parts in bars.values() for part in parts))
    figure = Figure(figsize=(max(6.0, 0.9 * len(names) + 1.5), 3.6), dpi=110, layout="constrained")
    axes = figure.subplots()
    width = 0.84 / len(bars)
    for number, (name, parts) in enumerate(bars.items()):
        places = np.arange(len(names)) - 0.42 + width * (number + 0.5)
        axes.bar(places, [parts.get(part, np.nan) for part in names], width, label=name, color=f"C{number}")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right", fontsize=8)
    highest = max((value for parts in bars.values() for value in parts.values()), default=1.0)
    axes.set_ylim(0, 1 if highest <= 1 else 100 if highest <= 100 else None)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd")
    axes.set_axisbelow(True)
    axes.set_title(title, fontsize=11, fontweight="bold")
    figure.legend(loc="outside lower center", ncols=min(4, len(bars)), fontsize=8, frameon=False)
    return figure


def colours(classes: int) -> NDArray[np.uint8]:
    """(256, 3) a colour for each class index, as far apart as a table of 40 gets them; what is no class is black."""
    from matplotlib import colormaps

    table = np.concatenate([colormaps["tab20"].colors, colormaps["tab20b"].colors])  # type: ignore[attr-defined]
    palette = np.zeros((256, 3), np.uint8)
    palette[:classes] = np.round(255 * table[np.arange(classes) % len(table)])
    return palette


def scenes_of(result: CaseResult) -> tuple[Sequence[str], list[Scene]] | None:
    """(class names, lines of `scene_sheet`) of a case; None where its exam kept no pictures."""
    workspace = result.directory.parents[1]
    cases, exams = CaseStore(workspace), ExamStore(workspace)
    exam_id = cases.exam_id(result.case.id)
    record = exams.record(exam_id)
    if record is None or record.kind != PictureKind.name or not (pictures := exams.pictures(exam_id)):
        return None
    truth = exams.truth(exam_id)
    stored = {index: cases.predictions(result.case.id, index) for index in range(1, len(result.rounds))}
    lines: list[Scene] = []
    for j, name in enumerate(record.tests):
        found = ((k, kept[Asked(j)].extras.get(FIRST)) for k, kept in stored.items() if Asked(j) in kept)
        predictions = {f"after {record.rounds[k - 1]}": first[0] for k, first in found if first is not None}
        if predictions:
            lines.append((name, pictures[j][0], truth[j][0], predictions))
    return (record.classes, lines) if lines else None
