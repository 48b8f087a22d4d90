"""Columns that say the same in every row: told once below a table instead of in each of its lines."""

from __future__ import annotations

from collections.abc import Sequence

from ianvs.results.report.layout import TextColumn

__all__ = ["TOLD_ONCE", "constants_note", "without_constants"]

# Who it is and how well it did stays, whatever the other rows say; and what a clock says, where all the same is chance.
TOLD_ONCE = (
    "paradigm",
    "round",
    "dataset",
    "module",
    "hyperparameter",
    "adopted",
    "seeds",
    "cost",
    "status",
    "url",
)
_MEASURED = ("train_seconds", "eval_seconds", "train_cpu_seconds", "eval_cpu_seconds", "peak_memory_mb")


def without_constants(columns: Sequence[TextColumn]) -> tuple[list[TextColumn], list[TextColumn]]:
    """(columns to show, those that say the same in every row), both in order. Of a single row all are shown.

    The status is left out only where every row says "finished".
    """
    told = [column for column in columns if _is_told_once(column)]
    return [column for column in columns if column not in told], told


def constants_note(told: Sequence[TextColumn]) -> str:
    """One line that says what the columns in `told` say; "" where there are none."""
    same = [f"{column.title} {column.cells[0]}" for column in told if column.cells[0]]
    blank = [column.title for column in told if not column.cells[0]]
    parts = [f"In every row: {', '.join(same)}." if same else "", f"In no row: {', '.join(blank)}." if blank else ""]
    return " ".join(filter(None, parts))


def _is_told_once(column: TextColumn) -> bool:
    if column.column.key in _MEASURED and any(column.cells):
        return False
    if len(column.cells) < 2 or not column.constant or column.column.kind not in TOLD_ONCE:
        return False
    return column.column.kind != "status" or column.cells[0] == "finished"
