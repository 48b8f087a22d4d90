"""Large csv files of plain numbers, read column by column. Anything unusual in one is left to the careful reader."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_numbers"]

WORTH_PANDAS = 2**20  # bytes; loading pandas for less would cost more than it saves


def read_numbers(path: Path, texts: Sequence[str]) -> tuple[NDArray[np.float32], dict[str, NDArray[np.object_]]] | None:
    """The cells of a csv whose columns, but for `texts`, hold numbers; each line after the header is a row.

    (N, D) numbers in the order of the file's columns, and of each of `texts` the (N,) stripped cells.

    None for a small file, and one that holds quotes, blank or uneven lines, empty cells, or a cell that is no number:
    Python's own csv module and float() say what is wrong with it, and where.
    """
    if path.stat().st_size < WORTH_PANDAS:
        return None
    data = path.read_bytes()
    if b'"' in data or b"\r" in data.replace(b"\r\n", b"\n"):
        return None
    header = data[: data.find(b"\n")].decode("utf-8-sig", "replace")
    columns = [name.strip() for name in header.split(",")]
    if len(set(columns)) != len(columns) or not all(columns) or not set(texts) < set(columns):
        return None
    features = [place for place, name in enumerate(columns) if name not in texts]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            numbers = np.loadtxt(  # parses numbers as float() does, to the last bit
                path, np.float64, comments=None, delimiter=",", skiprows=1, usecols=features, ndmin=2, encoding="utf-8"
            ).astype(np.float32)
            import pandas

            frame = pandas.read_csv(
                io.BytesIO(data), header=0, names=columns, index_col=False, usecols=list(texts), dtype="object",
                keep_default_na=False, na_values=[], skip_blank_lines=False, encoding="utf-8",
            )  # fmt: skip
            cells = {name: np.array([str(cell).strip() for cell in frame[name].tolist()], object) for name in texts}
    except (ValueError, Warning):
        return None
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if len(numbers) != lines - 1 or data.count(b",") != lines * (len(columns) - 1):
        return None
    return (numbers, cells) if all(all(column.tolist()) for column in cells.values()) else None
