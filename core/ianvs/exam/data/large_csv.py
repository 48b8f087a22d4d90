"""Large csv files of plain numbers, read column by column, a block at a time; anything unusual is left to `tables`."""

import io
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.data.csv_headers import column_names

WORTH_PANDAS = 2**20  # bytes; loading pandas for less would cost more than it saves
_BLOCK = 1 << 24  # bytes that are parsed at a time


@dataclass(frozen=True)
class NumbersOfCsv:
    """The cells of a csv.

    Attributes:
        numbers: (N, D) float32, in a map of a file that has no name.
        texts: (N,) stripped cells by the names of columns.
        exact: (N,) float64 by the names of columns.
    """

    numbers: NDArray[np.float32]
    texts: dict[str, NDArray[np.object_]]
    exact: dict[str, NDArray[np.float64]]


def read_numbers(
    path: Path, texts: Sequence[str], features: Sequence[str] | None = None, exact: Sequence[str] = ()
) -> NumbersOfCsv | None:
    """The cells of a csv of numbers; each line after the header is a row. It is read a block at a time.

    Args:
        path: of the file.
        texts: columns that are read as text.
        features: columns that hold numbers, in their order; None: all others, in the order of the file.
        exact: those of `features` that are told in float64, too.

    Returns:
        None for a small file, and one that holds quotes, blank or uneven lines, empty cells, or a cell that is no
        number: `read_csv` and `number_of` say what is wrong with it, and where.
    """
    if path.stat().st_size < WORTH_PANDAS:
        return None
    cells: dict[str, list[str]] = {name: [] for name in texts}
    doubles: dict[str, list[NDArray[np.float64]]] = {name: [] for name in exact}
    count = 0
    with path.open("rb") as file, tempfile.TemporaryFile() as numbers:
        columns = column_names(file.readline().decode("utf-8-sig", "replace").split(","))
        if len(set(columns)) != len(columns) or not set(texts) < set(columns):
            return None
        names = [name for name in columns if name not in texts] if features is None else list(features)
        while block := file.read(_BLOCK):
            found = _numbers_in(block + file.readline(), columns, texts, names)
            if found is None:
                return None
            with np.errstate(over="ignore"):  # what float32 can't hold is infinite, which is told
                found[0].astype(np.float32).tofile(numbers)
            count += len(found[0])
            for name in texts:
                cells[name] += found[1][name]
            for name in exact:
                doubles[name].append(found[0][:, names.index(name)].copy())
        if not count:
            return None
        numbers.flush()
        whole = np.memmap(numbers, np.float32, "r", shape=(count, len(names)))
    return NumbersOfCsv(
        whole,
        {name: np.array(values, object) for name, values in cells.items()},
        {name: np.concatenate(values) for name, values in doubles.items()},
    )


def _numbers_in(
    block: bytes, columns: Sequence[str], texts: Sequence[str], features: Sequence[str]
) -> tuple[NDArray[np.float64], dict[str, list[str]]] | None:
    """Of whole lines: (n, D) numbers of `features`, and the cells of `texts`."""
    if b'"' in block or b"\r" in block.replace(b"\r\n", b"\n"):
        return None
    places = [columns.index(name) for name in features]
    try:
        with warnings.catch_warnings(), tempfile.NamedTemporaryFile() as file:
            warnings.simplefilter("error")
            file.write(block)
            file.flush()
            numbers = np.loadtxt(  # parses numbers as number_of() does, to the last bit; much faster by a file's name
                file.name, np.float64, comments=None, delimiter=",", usecols=places, ndmin=2, encoding="utf-8"
            )
            import pandas

            frame = pandas.read_csv(
                io.BytesIO(block), header=None, names=list(columns), index_col=False, usecols=list(texts),
                dtype="object", keep_default_na=False, na_values=[], skip_blank_lines=False, encoding="utf-8",
            )  # fmt: skip
            cells = {name: [sys.intern(str(cell).strip()) for cell in frame[name].tolist()] for name in texts}
    except (ValueError, Warning):
        return None
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    if len(numbers) != lines or block.count(b",") != lines * (len(columns) - 1):
        return None
    return (numbers, cells) if all(all(column) for column in cells.values()) else None
