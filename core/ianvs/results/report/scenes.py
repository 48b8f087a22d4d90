"""Images of segmentation and detection: the input, the truth, and the prediction after each round."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult, PredictionKey
from ianvs.exam.data_types import DataType, data_type
from ianvs.exam.metrics.label_pictures import FIRST
from ianvs.exam.metrics.ragged import Ragged
from ianvs.results.report.values import fit
from ianvs.store import CaseStore, ExamRecord, ExamStore

_CELL, _GAP, _MARGIN, _LINE, _FONT = 180, 6, 14, 20, 13  # pixels; _CELL is the width of an image
_LETTER = 7.2  # pixels, about
_LONGEST = 24  # characters
# matplotlib's tab20 and tab20b.
_COLOURS = (
    "1f77b4 aec7e8 ff7f0e ffbb78 2ca02c 98df8a d62728 ff9896 9467bd c5b0d5 8c564b c49c94 e377c2 f7b6d2 7f7f7f c7c7c7 "
    "bcbd22 dbdb8d 17becf 9edae5 393b79 5254a3 6b6ecf 9c9ede 637939 8ca252 b5cf6b cedb9c 8c6d31 bd9e39 e7ba52 e7cb94 "
    "843c39 ad494a d6616b e7969c 7b4173 a55194 ce6dbd de9ed6"
)


@dataclass(frozen=True)
class SceneSheet:
    """The first image of each test set through the rounds of a case; of boxes the first few, if test sets share them.

    Attributes:
        lines: Name of the test set, and (H, W, 3) input, truth and the prediction after each round, by their titles.
            Ignored pixels, and predictions of no class, are black.
        legend: Classes that occur, with their colours.
    """

    lines: tuple[tuple[str, Mapping[str, NDArray[np.uint8]]], ...]
    legend: tuple[tuple[str, str], ...]


def scene_sheet(result: CaseResult, most: int | None = None) -> SceneSheet | None:
    """Return scenes of the first `most` test sets; None for a case whose exam has no stored images."""
    workspace = result.directory.parents[1]
    cases, exams = CaseStore(workspace), ExamStore(workspace)
    exam_id = cases.exam_id(result.case.id)
    record = exams.record(exam_id)
    if record is None or record.shows not in ("label pictures", "boxes") or not (pictures := exams.pictures(exam_id)):
        return None
    truth = exams.truth(exam_id)
    stored = {index: cases.predictions(result.case.id, index) for index in range(1, len(result.rounds))}
    kind = data_type("detection" if record.shows == "boxes" else "segmentation")
    palette, used = colours(len(record.classes)), set[int]()
    for c, name in enumerate(record.classes):
        palette[c] = kind.colours.get(name, palette[c])
    lines: list[tuple[str, Mapping[str, NDArray[np.uint8]]]] = []
    if record.shows == "boxes":
        predicted = [
            {
                f"after {record.rounds[k - 1]}": made[PredictionKey(j)].labels
                for k, made in stored.items()
                if PredictionKey(j) in made
            }
            for j in range(len(truth))
        ]
        lines += list(_box_scenes(kind, record, pictures, truth, predicted, palette, used))[:most]
    names = record.tests if len(record.tests) == len(truth) else ["test"] * len(truth)
    for j, name in enumerate(names if record.shows == "label pictures" else ()):
        extras = (
            (k, made[PredictionKey(j)].extras.get(FIRST)) for k, made in stored.items() if PredictionKey(j) in made
        )
        predictions = {f"after {record.rounds[k - 1]}": first[0] for k, first in extras if first is not None}
        if predictions and len(lines) != most:
            cells = {"input": _photo(pictures[j][0])}
            for head, labels in {"truth": truth[j][0], **predictions}.items():
                used.update(np.unique(labels).tolist())
                cells[head] = palette[labels]
            lines.append((name, cells))
    if not lines:
        return None
    legend = tuple((name, "#" + bytes(palette[c]).hex()) for c, name in enumerate(record.classes) if c in used)
    return SceneSheet(tuple(lines), legend)


def _box_scenes(
    kind: DataType,
    record: ExamRecord,
    pictures: Sequence[NDArray[Any]],
    truth: Sequence[NDArray[Any]],
    predicted: Sequence[Mapping[str, NDArray[Any]]],
    palette: NDArray[np.uint8],
    used: set[int],
) -> Iterator[tuple[str, dict[str, NDArray[np.uint8]]]]:
    """Yield a line for the first image of each test set, or for several of a shared one.

    Used: receives classes that occur.
    """
    for j, seen in enumerate(pictures):
        for n, x in enumerate(seen[: 1 if len(pictures) > 1 else None] if predicted[j] else ()):
            photo, cells = _photo(x), dict[str, NDArray[np.uint8]]()
            for head, packed in {"truth": truth[j], **predicted[j]}.items():
                boxes = Ragged(packed)[n]
                used.update(boxes["labels"].tolist())
                cells[head] = kind.drawn(photo, boxes, palette)
            name = record.tests[j] if len(record.tests) == len(truth) > 1 else f"image {n + 1}"
            yield name, {"input": photo, **cells}


def _photo(x: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Expand a single channel to grey RGB."""
    from PIL import Image

    pixels = np.asarray(x, dtype=np.uint8)
    grey = pixels.ndim == 3 and pixels.shape[2] == 1
    return np.asarray(Image.fromarray(pixels[..., 0] if grey else pixels).convert("RGB"))


def sheet_png(sheet: SceneSheet, title: str, note: str) -> bytes:
    """Return the scenes as a PNG with a line for each test set."""
    from PIL import Image, ImageDraw, ImageFont

    legend, first = sheet.legend, sheet.lines[0][1]["truth"]
    tall = round(_CELL * first.shape[0] / first.shape[1])
    left = _MARGIN + int(_LETTER * max(len(fit(name, _LONGEST)) for name, _ in sheet.lines)) + _GAP
    columns = max(len(cells) for _, cells in sheet.lines)
    width = max(left + (_CELL + _GAP) * columns, int(_LETTER * len(title))) + _MARGIN
    step = int(_LETTER * max((len(name) for name, _ in legend), default=0)) + 30
    across = max(1, (width - 2 * _MARGIN) // step)
    top = _MARGIN + 3 * _LINE
    foot = top + (tall + _GAP) * len(sheet.lines) + _GAP
    drawn = Image.new("RGB", (width, foot + _LINE * -(-len(legend) // across) + _MARGIN), "white")
    pen, font = ImageDraw.Draw(drawn), ImageFont.load_default(_FONT)
    pen.text((_MARGIN, _MARGIN), title, "black", font)
    pen.text((_MARGIN, _MARGIN + _LINE), fit(note, int(width / _LETTER)), "#545b65", font)
    for number, (name, cells) in enumerate(sheet.lines):
        y = top + number * (tall + _GAP)
        pen.text((_MARGIN, y + tall // 2 - _FONT // 2), fit(name, _LONGEST), "black", font)
        for place, (head, pixels) in enumerate(cells.items()):
            x = left + place * (_CELL + _GAP)
            if number == 0:
                pen.text((x, y - _LINE), fit(head, _LONGEST), "black", font)
            drawn.paste(Image.fromarray(pixels).resize((_CELL, tall), Image.Resampling.NEAREST), (x, y))
    for number, (name, fill) in enumerate(legend):
        x, y = _MARGIN + number % across * step, foot + number // across * _LINE
        pen.rectangle((x, y + 2, x + 12, y + 14), fill)
        pen.text((x + 18, y), name, "black", font)
    stream = BytesIO()
    drawn.save(stream, "PNG")
    return stream.getvalue()


def colours(classes: int) -> NDArray[np.uint8]:
    """Return (256, 3) a colour for each class index from a table of 40 distinct ones; "no class" is black."""
    table = np.array([list(bytes.fromhex(colour)) for colour in _COLOURS.split()], np.uint8)
    palette = np.zeros((256, 3), np.uint8)
    palette[:classes] = table[np.arange(classes) % len(table)]
    return palette
