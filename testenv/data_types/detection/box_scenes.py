"""Images with true boxes and answered boxes drawn on them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIDE, _DASH, _GAP = 180, 5, 3  # pixels: the longer side of an image, a dash and a gap between dashes
_MOST = 10  # number of answers that are drawn, by falling score
_OF_BEST = 0.3  # share of the image's highest score; lower answers are not drawn, as detectors return many of them


def with_boxes(
    picture: NDArray[np.uint8], boxes: Mapping[str, NDArray[Any]], palette: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Return the image (H, W, 3) enlarged, with its boxes in the colours of their classes.

    boxes: `boxes` (n, 4) x1 y1 x2 y2 in pixels, `labels` (n,), and for answers `scores` (n,), which are written beside
    the boxes. True boxes are solid, answers dashed.
    """
    from PIL import Image, ImageDraw, ImageFont

    scale = _SIDE / max(picture.shape[:2])
    height, width = (max(1, round(side * scale)) for side in picture.shape[:2])
    drawn = Image.fromarray(picture).resize((width, height), Image.Resampling.BILINEAR)
    pen, font = ImageDraw.Draw(drawn), ImageFont.load_default(9)
    scores = boxes.get("scores")
    rows = np.arange(len(boxes["labels"]))
    if scores is not None and len(scores):
        rows = np.argsort(scores, kind="stable")[-_MOST:]
        rows = rows[scores[rows] >= _OF_BEST * scores.max()]
    for row in rows.tolist():
        x1, y1, x2, y2 = (float(corner) * scale for corner in boxes["boxes"][row])
        fill = tuple(palette[int(boxes["labels"][row])].tolist())
        if scores is None:
            pen.rectangle((x1, y1, x2, y2), outline=fill, width=2)
            continue
        for start in np.arange(0, max(x2 - x1, y2 - y1), _DASH + _GAP).tolist():
            for y in (y1, y2):
                pen.line((min(x1 + start, x2), y, min(x1 + start + _DASH, x2), y), fill, 2)
            for x in (x1, x2):
                pen.line((x, min(y1 + start, y2), x, min(y1 + start + _DASH, y2)), fill, 2)
        # Above the box, or below it if it is at the edge, so the text does not cover its content.
        beside = (min(x1, width - 20), y1 - 12 if y1 >= 12 else y2 + 1)
        pen.text(beside, f"{float(scores[row]):.2f}", "white", font, stroke_width=1, stroke_fill="black")
    return np.asarray(drawn)
