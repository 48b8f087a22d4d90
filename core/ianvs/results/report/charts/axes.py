"""The frame of a chart: scales from values to pixels, ticks, grid lines and the names of the axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ianvs.results.report.charts.svg import tag, text

_MOST_LABELS = 12  # of places


@dataclass(frozen=True)
class Scale:
    """Values between `low` and `high`; ticks: (value, label)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def part(self, value: float) -> float:
        """0 at `low`, 1 at `high`."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)


def nice_scale(values: Iterable[float], wanted: int = 5, unit: bool = False) -> Scale:
    """Round ends and steps of 1, 2 or 5 times a power of ten around `values`. unit: shares are shown from 0 to 1."""
    known = [value for value in values if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    if unit and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    if high == low:
        low, high = low - (abs(low) or 1) * 0.1, high + (abs(high) or 1) * 0.1
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(factor for factor in (1, 2, 5, 10) if raw <= factor * power * (1 + 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = tuple((n * step, _label(n * step, decimals)) for n in range(first, last + 1))
    return Scale(first * step, last * step, ticks)


def log_scale(values: Iterable[float]) -> Scale:
    """From below to above `values`, all of them > 0, with ticks at 1, 2 and 5 times powers of ten."""
    known = [value for value in values if math.isfinite(value) and value > 0] or [1.0]
    low, high = min(known) / 1.25, max(known) * 1.25
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    every = [(factor * 10.0**power, factor) for power in powers for factor in (1, 2, 5)]
    inside = [(value, factor) for value, factor in every if low <= value <= high]
    if len(inside) > 7:
        inside = [(value, factor) for value, factor in inside if factor == 1]
    return Scale(low, high, tuple((value, f"{value:,g}") for value, _ in inside), log=True)


def ordinal_scale(labels: Sequence[str]) -> Scale:
    """Places 0, 1, ... with a label each, or every n-th where there are many."""
    every = max(1, math.ceil(len(labels) / _MOST_LABELS))
    ticks = tuple((float(n), label) for n, label in enumerate(labels) if n % every == 0)
    return Scale(-0.35, len(labels) - 0.65, ticks)


def _label(value: float, decimals: int) -> str:
    shown = f"{value:.{decimals}f}" if abs(value) < 1e6 else f"{value:g}"
    return shown.removeprefix("-") if float(shown) == 0 else shown


@dataclass(frozen=True)
class Frame:
    """The rectangle of a chart within its picture, in pixels."""

    x: Scale
    y: Scale
    left: float = 52
    top: float = 14
    width: float = 520
    height: float = 280

    def at(self, x: float, y: float) -> tuple[float, float]:
        """(x, y) of the picture; nan stays nan."""
        return (
            self.left + self.width * self.x.part(x) if not math.isnan(x) else math.nan,
            self.top + self.height * (1 - self.y.part(y)) if not math.isnan(y) else math.nan,
        )

    def drawn(self, x_name: str, y_name: str) -> Markup:
        """Grid, ticks and names."""
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
        middle = self.top + self.height / 2
        turned = f"translate(13 {middle:g}) rotate(-90)"
        parts.append(tag("text", y_name, text_anchor="middle", class_="name", transform=turned))
        return tag("g", *parts, class_="axes")

    @property
    def size(self) -> tuple[float, float]:
        """(width, height) of the picture."""
        return self.left + self.width + 14, self.top + self.height + 46
