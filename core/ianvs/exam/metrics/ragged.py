"""Labels and predictions of any length, packed as numbers for the store: boxes of images, points, tracks."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.label_pictures import LazyRows

_LENGTH_BYTES = 8  # bytes of the number at the beginning that gives the length of the index
_ALIGNED = 8  # alignment of arrays, in bytes


class Ragged(LazyRows):
    """N mappings from names to arrays (n, ...), with a different n for each sample. A slice or mask selects samples."""

    def __init__(self, stored: NDArray[np.uint8]) -> None:
        """stored: the result of `packed_ragged`."""
        stored = np.ascontiguousarray(stored)
        begin = _LENGTH_BYTES + int.from_bytes(stored[:_LENGTH_BYTES].tobytes(), "little")
        index = json.loads(stored[_LENGTH_BYTES:begin].tobytes())
        begin += -begin % _ALIGNED
        self._columns: dict[str, tuple[NDArray[Any], NDArray[np.int64]]] = {}
        for name, dtype, shape, count in index["columns"]:
            size, ends = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize, 8 * (index["samples"] + 1)
            starts = stored[begin : begin + ends].view(np.int64)
            begin += ends
            flat = stored[begin : begin + count * size].view(dtype).reshape(count, *shape)
            begin += count * size + -(count * size) % _ALIGNED
            self._columns[name] = flat, starts
        self._positions = np.arange(index["samples"])

    def column(self, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return (all rows of all samples, the sample of each row), for vectorised scores."""
        flat, starts = self._columns[name]
        counts = np.diff(starts)[self._positions]
        owner = np.repeat(np.arange(len(self)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return flat[np.repeat(starts[:-1][self._positions], counts) + within], owner

    def _at(self, position: int) -> dict[str, NDArray[Any]]:
        return {name: flat[starts[position] : starts[position + 1]] for name, (flat, starts) in self._columns.items()}


def packed_ragged(samples: Sequence[Mapping[str, Any]], fields: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """Pack mappings from names to arrays into bytes.

    fields: for each name an empty array (0, ...) with the type and shape of its rows; a sample that lacks a
    field gets zeros, as many rows as it has of the first field.
    """
    first = next(iter(fields))
    columns, pieces = [], list[bytes]()
    lengths = [len(sample[first]) for sample in samples]
    for name, like in fields.items():
        parts = [
            np.asarray(sample[name], like.dtype).reshape(-1, *like.shape[1:])
            if name in sample
            else np.zeros((length, *like.shape[1:]), like.dtype)
            for sample, length in zip(samples, lengths, strict=True)
        ]
        flat = np.concatenate([like, *parts])
        columns.append([name, like.dtype.str, list(like.shape[1:]), len(flat)])
        pieces.append(np.cumsum([0, *map(len, parts)], dtype=np.int64).tobytes())
        pieces.append(flat.tobytes() + b"\0" * (-flat.nbytes % _ALIGNED))
    index = json.dumps({"samples": len(samples), "columns": columns}).encode()
    index = len(index).to_bytes(_LENGTH_BYTES, "little") + index
    return np.frombuffer(b"".join([index, b"\0" * (-len(index) % _ALIGNED), *pieces]), dtype=np.uint8)


def join_ragged(parts: Sequence[Ragged]) -> Ragged:
    """Concatenate samples with the same names."""
    fields = {name: flat[:0] for name, (flat, _) in parts[0]._columns.items()}
    return Ragged(packed_ragged([sample for part in parts for sample in part], fields))
