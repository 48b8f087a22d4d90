"""How values of hyperparameters and messages may be shown: typed, compact, and without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ianvs.config.secrets import HIDDEN, hide_secrets, is_secret

__all__ = ["Cell", "cell_text", "hide_secrets", "shown_hyperparameters", "shown_number"]

Cell = int | float | str | bool | None


def shown_hyperparameters(hyperparameters: Mapping[str, Any]) -> dict[str, Cell]:
    """Numbers, truth values and texts as they are, lists and mappings as compact JSON, secrets hidden."""
    return {name: _cell(name, value) for name, value in hyperparameters.items()}


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


def _cell(name: str, value: Any) -> Cell:
    if is_secret(name):
        return HIDDEN
    if isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a numpy scalar
        return _cell(name, value.item())
    return json.dumps(_jsonable(value), separators=(",", ":"), ensure_ascii=False)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): HIDDEN if is_secret(str(key)) else _jsonable(part) for key, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_jsonable(part) for part in (sorted(value, key=str) if isinstance(value, set | frozenset) else value)]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
