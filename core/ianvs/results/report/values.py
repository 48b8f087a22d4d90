"""How values of hyperparameters and messages may be shown: typed, compact, and without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ianvs.base.secrets import without_secrets

__all__ = ["Cell", "cell_text", "fit", "shown_hyperparameters", "shown_number", "signed_number"]

Cell = int | float | str | bool | None


def shown_hyperparameters(hyperparameters: Mapping[str, object]) -> dict[str, Cell]:
    """Numbers, truth values and texts as they are, lists and mappings as compact JSON, secrets hidden."""
    return {
        name: value
        if isinstance(value, bool | int | float | str)
        else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        for name, value in without_secrets(hyperparameters).items()
    }


def cell_text(value: Cell) -> str:
    """The shortest text that reads back as `value`; "" for None."""
    if value is None:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


def shown_number(value: float, decimals: int) -> str:
    """`value` with so many decimals; without a fraction when it is huge, and never "-0.00"."""
    if abs(value) >= 1e15:
        return f"{value:.3g}"
    text = f"{value:.{decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def signed_number(value: float, decimals: int) -> str:
    shown = shown_number(value, decimals)
    return shown if shown.startswith("-") else f"+{shown}"


def fit(said: str, longest: int) -> str:
    """`said` in at most `longest` characters."""
    return said if len(said) <= longest else f"{said[: longest - 1]}…"
