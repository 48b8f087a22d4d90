"""Building blocks of charts: SVG elements, line styles, and a frame with scales and grid lines."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import count

from markupsafe import Markup, escape

from ianvs.base.visible_text import visible
from ianvs.results.report.values import shown_number

LIGHT = ("#0a4fb4", "#c43c00", "#008a66", "#c94f9f", "#a59300", "#2c96f0", "#521a00", "#0b0e12")
DARK = ("#7cc4f4", "#ff7f33", "#12b088", "#dd82c8", "#f0e442", "#4472e0", "#a4503c", "#ffffff")
"""The hues of Okabe and Ito (2008), adjusted so that all differ for every kind of colour vision."""
PAGE = {"paper": "#ffffff", "ink": "#16191d", "soft": "#545b65", "grid": "#e6e9ed"}  # the same as in page.css
BOUND = ("#6b6b6b", "#a8a8a8")
"""The greys of references: on a light and on a dark page."""

MARKERS = ("circle", "square", "diamond", "up", "down", "plus", "cross", "star")
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3), (5, 2), (10, 3, 2, 2, 2, 3), (4, 4))
_ARM = ((-0.4, -0.4), (-0.4, -1.2), (0.4, -1.2))  # one arm of a plus; three rotations make the rest
_PLUS = (*_ARM, *((-y, x) for x, y in _ARM), *((-x, -y) for x, y in _ARM), *((y, -x) for x, y in _ARM))
_TURN = math.sqrt(0.5)
_NUMBER = (int, float)  # created once: the expression `int | float` creates a new object each time
_SHAPES: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "up": ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
    "down": ((0, 1.2), (1.15, -0.9), (-1.15, -0.9)),
    "plus": _PLUS,
    "cross": tuple(((x - y) * _TURN, (x + y) * _TURN) for x, y in _PLUS),
    "star": tuple(
        (size * math.sin(k * math.pi / 5), -size * math.cos(k * math.pi / 5)) for k, size in enumerate((1.45, 0.6) * 5)
    ),
}


@dataclass(frozen=True)
class LineStyle:
    """colour: index into LIGHT and DARK; None: the grey of references. dash: lengths of strokes and gaps; (): solid."""

    colour: int | None
    dash: tuple[int, ...]
    marker: str


def num(value: float) -> str:
    """Return a length in pixels with one decimal at most."""
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def tag(name: str, *children: str | Markup, **attributes: object) -> Markup:
    """Return `<name ...>children</name>`.

    `class_` is class, `stroke_width` stroke-width; attributes of None are left out.
    """
    given = "".join(
        [
            f' {key.rstrip("_").replace("_", "-")}="{num(value) if isinstance(value, _NUMBER) else _text(value)}"'
            for key, value in attributes.items()
            if value is not None
        ]
    )
    inside = "".join([child if isinstance(child, Markup) else _text(child) for child in children])
    return Markup(f"<{name}{given}>{inside}</{name}>" if inside else f"<{name}{given}/>")


def _text(value: object) -> Markup:
    return escape(value if isinstance(value, Markup) else visible(str(value)))


def text(x: float, y: float, content: str, anchor: str | None = None, **attributes: object) -> Markup:
    """Return a text. anchor: "middle", "end"; None: the text begins at x."""
    return tag("text", content, x=x, y=y, text_anchor=anchor, **attributes)


def slanted(x: float, y: float, content: str) -> Markup:
    """Return a label that ends at (x, y) and rises towards it."""
    return text(0, 0, content, "end", transform=f"translate({x:.1f} {y:.1f}) rotate(-35)")


def figure(
    key: str,
    width: float,
    height: float,
    title: str,
    about: str,
    *children: Markup,
    class_: str = "",
    **data: object,
) -> Markup:
    """Return an image with a name and a description for screen readers.

    key: unique in the page. data: for the page's script; data_step is the height of each row of a chart with one row
    per line, so that gaps of hidden rows are closed; data_across is the name of x values, shown before their numbers.
    """
    return tag(
        "svg",
        tag("title", title, id=f"{key}-t"),
        tag("desc", about, id=f"{key}-d"),
        *children,
        id=key,
        viewBox=f"0 0 {num(width)} {num(height)}",
        width=width,
        height=height,
        role="img",
        aria_labelledby=f"{key}-t",
        aria_describedby=f"{key}-d",
        class_=class_ or None,
        **data,
    )


def path(points: Sequence[tuple[float, float]]) -> str:
    """Return the data of a line through `points`; a gap where one is nan."""
    steps, pen = [], "M"
    for x, y in points:
        is_number = not (math.isnan(x) or math.isnan(y))
        steps += [f"{pen}{num(x)} {num(y)}"] if is_number else []
        pen = "L" if is_number else "M"
    return "".join(steps)


def marker(shape: str, x: float, y: float, size: float = 3.2) -> str:
    """Return the data of a path that draws a marker around (x, y)."""
    if shape == "circle":
        r = num(size)
        return f"M{num(x - size)} {num(y)}a{r} {r} 0 1 0 {num(2 * size)} 0a{r} {r} 0 1 0 {num(-2 * size)} 0z"
    return path([(x + a * size, y + b * size) for a, b in _SHAPES[shape]]) + "z"


def dots(style: LineStyle, points: Sequence[tuple[float, float]], size: float = 3.2, **attributes: object) -> Markup:
    """Return a marker at each of `points` without nan."""
    finite = [(x, y) for x, y in points if not (math.isnan(x) or math.isnan(y))]
    drawn = "".join(marker(style.marker, x, y, size) for x, y in finite)
    return tag("path", d=drawn, class_=classes("dot", style), **attributes)


def classes(kind: str, style: LineStyle) -> str:
    """Return the classes by which the page's style sheet colours an element of a row."""
    return f"{kind} {'cb' if style.colour is None else f'c{style.colour}'}"


def chart_style() -> str:
    """Return the style sheet of charts; its colours are variables."""
    return files("ianvs.results.report.charts").joinpath("chart.css").read_text(encoding="utf-8")


def dash(style: LineStyle) -> str | None:
    return " ".join(map(str, style.dash)) or None


def line_styles(lines: Iterable[tuple[str, bool]]) -> list[LineStyle]:
    """Return a distinct style for each line, for any number of lines. lines: (method, whether it is a reference).

    Lines of one method have its colour, and differ in marker and dash.
    """
    methods: dict[tuple[str, bool], tuple[int | None, str]] = {}
    dashes, numbers, references = Counter[tuple[int | None, str]](), count(), count()
    styles = []
    for method in lines:
        if method not in methods:
            if method[1]:
                methods[method] = None, MARKERS[next(references) % len(MARKERS)]
            else:
                turn, colour = divmod(next(numbers), len(LIGHT))
                methods[method] = colour, MARKERS[(turn + colour) % len(MARKERS)]
        look = methods[method]
        place = dashes[look] + method[1]  # references are never solid
        dashes[look] += 1
        shape = MARKERS[(MARKERS.index(look[1]) + place - method[1]) % len(MARKERS)]
        styles.append(LineStyle(look[0], _DASHES[place] if place < len(_DASHES) else (3 + place, 3), shape))
    return styles


_MOST_LABELS = 12  # of places


@dataclass(frozen=True)
class Scale:
    """A range of values from `low` to `high`; ticks: (value, label)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def part(self, value: float) -> float:
        """Return the position in the range: 0 at `low`, 1 at `high`."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)


def nice_scale(values: Iterable[float], wanted: int = 5, unit: bool = False) -> Scale:
    """Return a scale with ends and steps of 1, 2 or 5 times a power of ten around `values`.

    Unit: shares are shown from 0 to 1.
    """
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if unit and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    if high == low:
        low, high = low - (abs(low) or 1) * 0.1, high + (abs(high) or 1) * 0.1
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(factor for factor in (1, 2, 5, 10) if raw <= factor * power * (1 + 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    marks = (n * step for n in range(first, last + 1))
    ticks = tuple((at, shown_number(at, decimals) if abs(at) < 1e6 else f"{at:g}") for at in marks)
    return Scale(first * step, last * step, ticks)


def log_scale(values: Iterable[float]) -> Scale:
    """Return a logarithmic scale around `values` > 0, with ticks at 1, 2 and 5 times powers of ten."""
    positive = [value for value in values if math.isfinite(value) and value > 0] or [1.0]
    low, high = min(positive) / 1.25, max(positive) * 1.25
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [(factor * 10.0**power, factor) for power in powers for factor in (1, 2, 5)]
    inside = [(value, factor) for value, factor in every if low <= value <= high]
    if len(inside) > 7:
        inside = [(value, factor) for value, factor in inside if factor == 1]
    return Scale(low, high, tuple((value, f"{value:,g}") for value, _ in inside), log=True)


def ordinal_scale(labels: Sequence[str]) -> Scale:
    """Return positions 0, 1, ... with a label each, or every n-th if there are many."""
    every = max(1, math.ceil(len(labels) / _MOST_LABELS))
    ticks = tuple((float(n), label) for n, label in enumerate(labels) if n % every == 0)
    return Scale(-0.35, len(labels) - 0.65, ticks)


@dataclass(frozen=True)
class Frame:
    """The rectangle of a chart within its image, in pixels."""

    x: Scale
    y: Scale
    left: float = 56
    top: float = 34
    width: float = 520
    height: float = 280

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return (x, y) of the image; nan stays nan."""
        return (
            self.left + self.width * self.x.part(x) if not math.isnan(x) else math.nan,
            self.top + self.height * (1 - self.y.part(y)) if not math.isnan(y) else math.nan,
        )

    def axes(self, x_name: str, y_name: str) -> Markup:
        """Return grid, ticks and axis names; that of y is above, where there is room for it."""
        right, bottom = self.left + self.width, self.top + self.height
        parts = []
        for value, label in self.y.ticks:
            _, y = self.at(self.x.low, value)
            parts.append(tag("path", d=f"M{self.left:g} {y:.1f}H{right:g}", class_="grid"))
            parts.append(text(self.left - 7, y + 4, label, "end"))
        for value, label in self.x.ticks:
            x, _ = self.at(value, self.y.low)
            parts.append(tag("path", d=f"M{x:.1f} {bottom:g}v5", class_="axis"))
            parts.append(text(x, bottom + 18, label, "middle"))
        parts.append(tag("path", d=f"M{self.left:g} {bottom:g}H{right:g}", class_="axis"))
        parts.append(text(self.left + self.width / 2, bottom + 36, x_name, "middle", class_="name"))
        parts += [text(0, 16, y_name, class_="name")] if y_name else []
        return tag("g", *parts, class_="axes")

    @property
    def size(self) -> tuple[float, float]:
        """(width, height) of the image."""
        return self.left + self.width + 18, self.top + self.height + 46
