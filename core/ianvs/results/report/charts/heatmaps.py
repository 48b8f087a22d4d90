"""Score matrices as heatmaps: small ones as vectors with numbers, large ones as pixels.

The heatmaps of one score are side by side, as values and as differences to one row.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import ArrayLike, NDArray

from ianvs.base.visible_text import visible
from ianvs.results.report.charts.shown_rows import ShownRow
from ianvs.results.report.charts.svg import figure, num, slanted, tag, text
from ianvs.results.report.leaderboard_row import RowKey
from ianvs.results.report.row_scores import RowScore
from ianvs.results.report.values import fit

_MOST_ROUNDS = 25  # limit of rounds for numbers in cells
_CELL = (46, 25)  # pixels
_LARGE = 300  # the longer side of a heatmap without numbers, in pixels
_LABEL = 15  # characters
_MOST_CELLS = 400_000  # limit for all heatmaps of a page, which a browser opens in a second or two
_MOST_NUMBERED = 4_000  # limit of cells with numbers, some 250 characters each
_MOST_MAPS = 24  # limit of a page; a single score has at least ten
_MOST_STORED = 1_500_000  # cells of score matrices in a page: some 6 MB
_ABOUT = "Rows: after each round, the untrained model first. Columns: test sets."
_GREY = (0xE4, 0xE4, 0xE4)  # not evaluated

# ColorBrewer's YlGnBu and PuOr (Brewer 2003), which are safe for colour-blind readers.
SEQUENTIAL = ("ffffd9", "edf8b1", "c7e9b4", "7fcdbb", "41b6c4", "1d91c0", "225ea8", "253494", "081d58")
DIVERGING = ("b35806", "e08214", "fdb863", "fee0b6", "f7f7f7", "d8daeb", "b2abd2", "8073ac", "542788")


def limits(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the range of the colours: 0 to 1 for scores, so that images compare.

    Else from the lowest to the highest value.
    """
    finite = values[np.isfinite(values)]
    if finite.size == 0 or (finite.min() >= 0 and finite.max() <= 1):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def colours_of(values: ArrayLike, low: float, high: float, stops: tuple[str, ...] = SEQUENTIAL) -> NDArray[np.uint8]:
    """Return (..., 3) red, green and blue of `values`, linear between `stops`, which are evenly spaced from `low` to
    `high`.

    Values beyond have the colour of the end; nan is grey.
    """
    numbers = np.asarray(values, dtype=np.float64)
    table = np.array([[int(stop[n : n + 2], 16) for n in (0, 2, 4)] for stop in stops], dtype=np.float64)
    places = np.clip((np.nan_to_num(numbers, nan=low) - low) / (high - low), 0, 1) * (len(stops) - 1)
    mixed = np.stack([np.interp(places, range(len(stops)), table[:, part]) for part in range(3)], axis=-1)
    mixed[np.isnan(numbers)] = _GREY
    return np.round(mixed).astype(np.uint8)


def heatmap_svg(
    key: str,
    values: NDArray[np.float64],
    rounds: tuple[str, ...],
    tests: tuple[str, ...],
    title: str,
    scale: tuple[float, float],
    stops: tuple[str, ...] = SEQUENTIAL,
    numbered: bool = True,
) -> Markup:
    """Return a heatmap of values (T + 1, J).

    Row 0, the untrained model, is set apart; what a round has just taught is framed.

    numbered: whether cells hold their numbers, if there are no more than 25 rounds and test sets.
    """
    if not numbered or max(values.shape[0] - 1, values.shape[1]) > _MOST_ROUNDS:
        return _pixels(key, values, scale, stops, title)
    colours, signed = colours_of(values, *scale, stops), stops is DIVERGING
    count, columns = values.shape
    names = ["untrained", *(f"{k}. {fit(name, _LABEL)}" for k, name in enumerate(rounds, 1))]
    left = 12 + 6.4 * max(map(len, names))
    wide, tall = _CELL
    aslant = any(len(name) > 7 for name in tests)
    foot = 16 + (4.3 * min(_LABEL, max(map(len, tests))) if aslant else 4)
    gap = 4  # after the row of the untrained model
    inks = np.where(_luminance(colours) > 0.179, "#000", "#fff")  # here both have the same contrast, 4.58 : 1
    cells = zip(names, values.tolist(), colours.tolist(), inks.tolist(), strict=True)
    across = [(num(left + j * wide), num(left + j * wide + wide / 2 - 0.5)) for j in range(columns)]
    edge = num(left - 7)
    parts = []
    for k, (name, *row) in enumerate(cells):
        y = k * tall + (gap if k else 0)
        line = y + tall / 2 + 4
        top, base = num(y), num(line)
        # Thousands of cells without anything to escape: `tag` would take ten times as long.
        parts.append(Markup(f'<text x="{edge}" y="{base}" text-anchor="end">{escape(visible(name))}</text>'))
        drawn = (
            f'<rect x="{x}" y="{top}" width="{wide - 1}" height="{tall - 1}" fill="#{bytes(fill).hex()}"/>'
            f'<text x="{middle}" y="{base}" text-anchor="middle" fill="{ink}">{_number(value, signed)}</text>'
            for (x, middle), value, fill, ink in zip(across, *row, strict=True)
        )
        parts.append(Markup("".join(drawn)))
    if columns == count - 1 and columns > 1:
        for j in range(columns):
            place = f'x="{num(left + j * wide)}" y="{num((j + 1) * tall + gap)}"'
            parts.append(Markup(f'<rect {place} width="{wide - 1}" height="{tall - 1}" class="taught"/>'))
    bottom = count * tall + gap
    for j, name in enumerate(tests):
        x, label = left + (j + 0.5) * wide, fit(name, _LABEL)
        parts.append(slanted(x + 5, bottom + 12, label) if aslant else text(x, bottom + 13, label, "middle"))
    return figure(key, left + columns * wide + 4, bottom + foot, title, _ABOUT, *parts, class_="heat")


def _pixels(
    key: str, values: NDArray[np.float64], scale: tuple[float, float], stops: tuple[str, ...], title: str
) -> Markup:
    """Return one pixel for each cell, enlarged without smoothing, for any number of cells."""
    count, columns = values.shape
    size = _LARGE / max(count, columns)
    width, height = size * columns, size * count
    left, top = 30.0, 4.0
    palette = _palette(scale, stops)
    shares = np.clip((np.nan_to_num(values) - scale[0]) / (scale[1] - scale[0]), 0, 1)
    numbers = np.where(np.isnan(values), 255, np.round(shares * 254)).astype(np.uint8)
    image = tag(
        "image",
        href=png_uri(numbers, palette),
        x=left,
        y=top,
        width=width,
        height=height,
        preserveAspectRatio="none",
        class_="pixels",
    )
    labels = [
        text(left - 5, top + size, "0", "end"),
        text(left - 5, top + height, str(count - 1), "end"),
        text(left, top + height + 14, "1"),
        text(left + width, top + height + 14, str(columns), "end"),
        text(left + width / 2, top + height + 14, "test set", "middle"),
        tag("text", "after round", text_anchor="middle", transform=f"translate(11 {top + height / 2:.1f}) rotate(-90)"),
    ]
    return figure(key, left + width + 4, top + height + 20, title, _ABOUT, image, *labels, class_="heat large")


@lru_cache(maxsize=4)
def _palette(scale: tuple[float, float], stops: tuple[str, ...]) -> NDArray[np.uint8]:
    """Return (256, 3) colours evenly over the scale; the last is that of nan."""
    return colours_of([*np.linspace(*scale, 255), np.nan], *scale, stops)


def colour_bar(key: str, scale: tuple[float, float], stops: tuple[str, ...], name: str) -> Markup:
    """Return the legend of a colour scale."""
    low, high = scale
    signed = stops is DIVERGING
    parts = [
        tag("stop", offset=f"{100 * n / (len(stops) - 1):g}%", stop_color=f"#{stop}") for n, stop in enumerate(stops)
    ]
    gradient = tag("linearGradient", *parts, id=f"{key}-g")
    bar = tag("rect", x=0, y=0, width=180, height=10, fill=f"url(#{key}-g)")
    labels = [
        text(place * 180, 24, _number(low + place * (high - low), signed), anchor)
        for place, anchor in ((0, None), (0.5, "middle"), (1, "end"))
    ]
    about = f"Colours from {low:.3g} to {high:.3g}"
    return figure(key, 180, 28, f"{name}: colours", about, tag("defs", gradient), bar, *labels, class_="scale")


def png_uri(pixels: NDArray[np.uint8], palette: NDArray[np.uint8] | None = None) -> str:
    """Return (H, W, 3) colours, or (H, W) indices into a `palette` (256, 3), as a PNG in a data URI."""
    from PIL import Image

    picture = Image.fromarray(pixels)
    if palette is not None:
        picture = Image.fromarray(pixels, mode="P")
        picture.putpalette(palette.tobytes())
    stream = BytesIO()
    picture.save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


def _number(value: float, signed: bool) -> str:
    if math.isnan(value):
        return "–"
    shown = (f"{value:+.2f}" if signed else f"{value:.2f}") if abs(value) < 100 else f"{value:.3g}"
    if float(shown) == 0:
        return "0.00"
    return shown.replace("-", "−")


def _luminance(colours: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return (...) relative luminance, 0 to 1, of (..., 3) sRGB (WCAG 2.2)."""
    shares = colours / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ (0.2126, 0.7152, 0.0722))


class Matrices:
    """Score matrices for the page's script:
    {"names": [[rounds, tests], ...], "of": {id: [which names, unit, numbers]}}.

    numbers: row by row in thousandths of `unit`, null where not evaluated.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        self._by_id: dict[str, list[object]] = {}
        self._cells = 0

    def add(self, id_: str, score: RowScore) -> bool:
        """Add a matrix. Returns False if there is no room for it."""
        if self._cells + score.values.size > _MOST_STORED:
            return False
        self._cells += score.values.size
        which = self._names.setdefault((score.rounds, score.tests), len(self._names))
        largest = float(np.nanmax(np.abs(score.values)))
        unit = 10.0 ** max(0, math.floor(math.log10(largest)) - 2) if largest >= 1000 else 1.0
        thousandths = np.round(score.values.ravel() * 1000 / unit)
        numbers = [None if math.isnan(value) else int(value) for value in thousandths.tolist()]
        self._by_id[id_] = [which, unit, numbers]
        return True

    def as_data(self) -> dict[str, object]:
        names = [[list(rounds), list(tests)] for rounds, tests in self._names]
        return {"names": names, "of": self._by_id}


def heatmaps(
    key: str,
    rows: Sequence[ShownRow],
    scores: Mapping[RowKey, RowScore],
    matrices: Matrices,
    baseline: str | None,
    groups: int,
) -> dict[str, object]:
    """Return the heatmaps of one score for the page.

    matrix: its id in the page's data, "" if there is no room for its numbers. difference: to the baseline.
    """
    shown = [entry for entry in rows if entry.key in scores]
    each = max(scores[entry.key].values.size for entry in shown)
    # The first rows of the ranking.
    some = shown[: max(1, min(_MOST_CELLS // groups // each, max(10, _MOST_MAPS // groups)))]
    numbered = len(some) * each <= _MOST_NUMBERED // groups
    base = next((entry for entry in shown if entry.row.algorithm == baseline), None)
    base = base or next((entry for entry in shown if entry.row.rank is not None), shown[0])
    first = scores[base.key]
    every = np.concatenate([scores[entry.key].values.ravel() for entry in some])
    scale = limits(every)
    differences = {
        entry.id: (score.values - first.values) * (1 if score.higher_is_better else -1)
        for entry in some
        if (score := scores[entry.key]).values.shape == first.values.shape and entry is not base
    }
    far = max((float(np.nanmax(np.abs(d))) for d in differences.values() if not np.isnan(d).all()), default=0.0) or 1.0
    around = (-far, far)
    maps = []
    for entry in some:
        score, title, id_ = scores[entry.key], f"{first.score} of {entry.label}", f"{key}{entry.id}"
        names, difference = (score.rounds, score.tests), None
        svg = heatmap_svg(id_, score.values, *names, title, scale, numbered=numbered)
        if entry.id in differences:
            caption = f"{title}, less that of {base.label}"
            difference = heatmap_svg(f"{id_}d", differences[entry.id], *names, caption, around, DIVERGING, numbered)
        stored = id_ if matrices.add(id_, score) else ""
        maps.append({"id": entry.id, "label": entry.label, "svg": svg, "difference": difference, "matrix": stored})
    return {
        "score": first.score,
        "baseline": base.label,
        "scale": colour_bar(f"{key}s", scale, SEQUENTIAL, first.score),
        "difference_scale": colour_bar(f"{key}t", around, DIVERGING, f"Difference of {first.score}"),
        "maps": maps,
        "left_out": len(shown) - len(some),
    }
