"""Samples of tables that come in blocks of rows: in memory are labels, texts, and one block.

The columns are named, and chosen, as those of a csv or json file are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import Place, Problem
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.conversations import holds_conversations
from ianvs.exam.data.decode import decode_picture
from ianvs.exam.data.index import PICTURE_SUFFIXES
from ianvs.exam.data.listing import SourceError
from ianvs.exam.data.records import Records
from ianvs.exam.data.table_forms import Held
from ianvs.exam.data.tables import SAMPLE_COLUMNS, TEXT_COLUMN, Table, chosen_column, domain_column, label_column
from ianvs.exam.data.tables import no_sample_column, token

__all__ = ["Blocks", "read_blocks"]

Block = Mapping[str, Any]


@dataclass(frozen=True)
class Blocks:
    """A table. read: its blocks, again at each call, each with the values of the columns that are asked for.

    Values are an (n, ...) array of numbers, or a list of n: texts, the bytes of picture files, None where nothing is
    written, or what json can hold. classes: of a column, the names that its numbers stand for.
    """

    columns: tuple[str, ...]
    read: Callable[[Sequence[str]], Iterator[Block]]
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_blocks(table: Blocks, path: Path, spec: DatasetSpec) -> Held:
    """All samples of a table. path: what messages call it. Raises SourceError with the row of what is wrong."""
    first = next((block for block in table.read(table.columns) if _rows(block)), None)
    if first is None:
        raise SourceError([Problem("has no samples.", Place(path))])
    head = Table(path, table.columns, _rows(first), (0,))
    if spec.input is spec.label is None and holds_conversations(Records(path, tuple(head.rows), (), ())):
        return Held("conversations", [row for block in table.read(table.columns) for row in _rows(block)], [], [])
    label, domain = label_column(head, spec), domain_column(head, spec)
    others = [name for name in table.columns if name not in (label, domain)]
    sample = chosen_column(head, spec, "input") or head.named([one for one in SAMPLE_COLUMNS if one != label.casefold()])
    if sample is not None and spec.input is None and _is_number(first[sample]):
        sample = None  # one of several numbers
    odd = [name for name in others if not _is_number(first[name])]
    if sample is None and odd:
        sample = head.named([TEXT_COLUMN])
    if sample is None and (odd or not others):
        raise SourceError([no_sample_column(head, others, (0, odd[0]) if odd else None)])
    features = others if sample is None else [sample]
    labels: list[str] = []
    domains: list[str] = []
    texts: list[str] = []

    def blocks() -> Iterator[NDArray[Any]]:
        for block in table.read([*features, label, *([domain] if domain else [])]):
            start = len(labels)
            labels.extend(_names(block[label], label, table.classes.get(label), path, start))
            if domain:
                domains.extend(_names(block[domain], domain, table.classes.get(domain), path, start))
            if sample is not None and isinstance(first[sample][0], str):
                texts.extend(_names(block[sample], sample, None, path, start))
            else:
                columns = [_array(block[name], name, spec, path, start) for name in features]
                yield columns[0] if sample is not None else np.column_stack(columns).astype(np.float32, copy=False)

    x = _mapped(blocks(), sample, path)
    pictures = bool(texts) and texts[0].lower().endswith(PICTURE_SUFFIXES)
    form = "arrays" if x is not None else "paths" if pictures else "text"
    domains = domains or [""] * len(labels)
    return Held(form, texts if x is None else x, labels, domains, table.classes.get(label))


def _mapped(blocks: Iterable[NDArray[Any]], name: str | None, path: Path) -> NDArray[Any] | None:
    """All blocks one after the other, in a map of a file that has no name; None without any."""
    kind: tuple[Any, tuple[int, ...]] | None = None
    count = 0
    with tempfile.TemporaryFile() as file:
        for block in blocks:
            found = (block.dtype, block.shape[1:])
            kind = kind or found
            if found != kind:
                message = f"'{name}' is {found[0]} {found[1]}, in row 1 it is {kind[0]} {kind[1]}. Make them the same."
                raise _slip(path, count, message)
            block.tofile(file)
            count += len(block)
        file.flush()
        return None if kind is None else np.memmap(file, kind[0], "r", shape=(count, *kind[1]))


def _array(values: Any, name: str, spec: DatasetSpec, path: Path, start: int) -> NDArray[Any]:
    """(n, ...) of a block from row `start` on: uint8, of picture files (n, height, width, 3); others float32."""
    if isinstance(values, np.ndarray):
        return values if values.dtype == np.uint8 else values.astype(np.float32)
    pictures: list[NDArray[np.uint8]] = []
    for row, value in enumerate(values, start):
        if not isinstance(value, bytes):
            what = "is empty" if value is None else f"is {str(value)[:40]!r}, and no other row is like it"
            what = f"is a {type(value).__name__}" if isinstance(value, list | dict) else what
            raise _slip(path, row, f"'{name}' {what}; expected numbers, lists of one length, or pictures.")
        try:
            pictures.append(decode_picture(str(path), spec.image_size, value))
        except SourceError as broken:
            raise _slip(path, row, f"the picture in '{name}' {broken.problems[0].message}") from None
        if pictures[-1].shape != pictures[0].shape:
            sizes = " and ".join(f"{one.shape[0]}x{one.shape[1]}" for one in (pictures[0], pictures[-1]))
            message = f"the pictures in '{name}' differ in size, {sizes}. Set `image_size: [height, width]`."
            raise _slip(path, row, message)
    return np.stack(pictures)


def _names(values: Any, name: str, classes: Sequence[str] | None, path: Path, start: int) -> list[str]:
    """Labels, domains or texts of a block from row `start` on. classes: what numbers stand for."""
    told = []
    for row, value in enumerate(_listed(values), start):
        if classes is not None and isinstance(value, int):
            value = classes[value] if 0 <= value < len(classes) else None  # Hugging Face's -1 is no label
        if isinstance(value, list | dict | bytes):
            raise _slip(path, row, f"'{name}' is a {type(value).__name__}; expected one name or number.")
        told.append(token(value))
        if not told[-1]:
            raise _slip(path, row, f"the column '{name}' is empty.")
    return told


def _rows(block: Block) -> list[dict[str, Any]]:
    return [dict(zip(block, row, strict=True)) for row in zip(*map(_listed, block.values()), strict=True)]


def _listed(values: Any) -> list[Any]:
    listed: list[Any] = values.tolist() if isinstance(values, np.ndarray) else values
    return listed


def _is_number(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1


def _slip(path: Path, row: int, message: str) -> SourceError:
    return SourceError([Problem(f"row {row + 1}: {message}", Place(path))])
