"""How rows are told apart in pictures: colour, dash and marker, no two rows alike, and none by colour alone.

The colours are after Okabe & Ito 2008 ("Color Universal Design"), which people with any common kind of colour blindness
tell apart; darkened or lightened to a contrast of at least 3 : 1 on white and on a dark page (WCAG 2.2, 1.4.11).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["BOUND", "DARK", "LIGHT", "MARKERS", "LineStyle", "line_styles"]

LIGHT = ("#0072b2", "#d04a00", "#008761", "#b0468a", "#8f6a00", "#2a86c8")
DARK = ("#56b4e9", "#ff8f4a", "#2fc79b", "#e894c8", "#e6b422", "#a3b1ff")
BOUND = ("#6b6b6b", "#a8a8a8")
"""The greys of references, which are no competitors: on a light and on a dark page."""

MARKERS = ("circle", "square", "diamond", "up", "down", "plus", "cross", "star")
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (9, 3, 2, 3), (5, 2), (10, 3, 2, 2, 2, 3), (4, 4))


@dataclass(frozen=True)
class LineStyle:
    """colour: index into LIGHT and DARK; None: the grey of bounds. dash: lengths of strokes and gaps; (): solid."""

    colour: int | None
    dash: tuple[int, ...]
    marker: str


def line_styles(bounds: Iterable[bool]) -> list[LineStyle]:
    """One style for each row, all different, however many there are. bounds: which rows are references."""
    competitors = references = 0
    styles = []
    for bound in bounds:
        if bound:
            styles.append(_style(references, None))
            references += 1
        else:
            turn, colour = divmod(competitors, len(LIGHT))
            styles.append(_style(turn, colour))
            competitors += 1
    return styles


def _style(turn: int, colour: int | None) -> LineStyle:
    """The style of the `turn`-th line of a colour. Turns that have a marker in common differ in their dash.

    Neighbouring lines differ in the marker, too: a line that goes through its colours begins with another marker each.
    """
    marker = MARKERS[(turn + (colour or 0)) % len(MARKERS)]
    again = turn // len(MARKERS)
    if again < len(_DASHES):
        # 7 dashes and 8 + 1 have no common divisor: turn + again differs for all turns of a marker.
        number = (turn + again + (colour is None)) % len(_DASHES)
        return LineStyle(colour, _DASHES[number], marker)
    return LineStyle(colour, (3 + again, 3), marker)
