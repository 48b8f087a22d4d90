"""Elements of inline SVG. What is not Markup is escaped; numbers are short."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup, escape

from ianvs.results.report.line_styles import LineStyle

__all__ = ["classes", "dash", "dots", "figure", "marker", "num", "path", "tag", "text"]

_STAR = tuple(
    (size * math.sin(k * math.pi / 5), -size * math.cos(k * math.pi / 5)) for k, size in enumerate((1.45, 0.6) * 5)
)
_ARM = ((-0.4, -0.4), (-0.4, -1.2), (0.4, -1.2))  # of a plus; three turns of it make the rest
_PLUS = (*_ARM, *((-y, x) for x, y in _ARM), *((-x, -y) for x, y in _ARM), *((y, -x) for x, y in _ARM))
_TURN = math.sqrt(0.5)
_NUMBER = (int, float)  # made once: `int | float` is made anew whenever it is asked for
_SHAPES: dict[str, tuple[tuple[float, float], ...]] = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
    "up": ((0, -1.2), (1.15, 0.9), (-1.15, 0.9)),
    "down": ((0, 1.2), (1.15, -0.9), (-1.15, -0.9)),
    "plus": _PLUS,
    "cross": tuple(((x - y) * _TURN, (x + y) * _TURN) for x, y in _PLUS),
    "star": _STAR,
}


def num(value: float) -> str:
    """A length in pixels with one decimal at most."""
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def tag(name: str, *children: str | Markup, **attributes: object) -> Markup:
    """`<name ...>children</name>`. `class_` is class, `stroke_width` stroke-width; attributes of None are left out."""
    given = "".join(
        [
            f' {key.rstrip("_").replace("_", "-")}="{num(value) if isinstance(value, _NUMBER) else escape(value)}"'
            for key, value in attributes.items()
            if value is not None
        ]
    )
    inside = "".join([child if isinstance(child, Markup) else escape(child) for child in children])
    return Markup(f"<{name}{given}>{inside}</{name}>" if inside else f"<{name}{given}/>")


def text(x: float, y: float, said: str, anchor: str | None = None, **attributes: object) -> Markup:
    """anchor: "middle", "end"; None: the text begins at x."""
    return tag("text", said, x=x, y=y, text_anchor=anchor, **attributes)


def figure(
    key: str, width: float, height: float, title: str, about: str, *children: Markup, class_: str = ""
) -> Markup:
    """A picture with a name and a description for those who don't see it. key: unique in the page."""
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
    )


def path(points: Sequence[tuple[float, float]]) -> str:
    """The data of a line through `points`; a gap where one is nan."""
    steps, pen = [], "M"
    for x, y in points:
        if math.isnan(x) or math.isnan(y):
            pen = "M"
            continue
        steps.append(f"{pen}{num(x)} {num(y)}")
        pen = "L"
    return "".join(steps)


def marker(shape: str, x: float, y: float, size: float = 3.2) -> str:
    """The data of a path that draws a marker around (x, y)."""
    if shape == "circle":
        r = num(size)
        return f"M{num(x - size)} {num(y)}a{r} {r} 0 1 0 {num(2 * size)} 0a{r} {r} 0 1 0 {num(-2 * size)} 0z"
    return path([(x + a * size, y + b * size) for a, b in _SHAPES[shape]]) + "z"


def dots(style: LineStyle, points: Sequence[tuple[float, float]], size: float = 3.2, **attributes: object) -> Markup:
    """A marker at each of `points` that is known."""
    known = [(x, y) for x, y in points if not (math.isnan(x) or math.isnan(y))]
    drawn = "".join(marker(style.marker, x, y, size) for x, y in known)
    return tag("path", d=drawn, class_=classes("dot", style), **attributes)


def classes(kind: str, style: LineStyle) -> str:
    """The classes by which the page's style sheet colours an element of a row."""
    return f"{kind} {'cb' if style.colour is None else f'c{style.colour}'}"


def dash(style: LineStyle) -> str | None:
    return " ".join(map(str, style.dash)) or None
