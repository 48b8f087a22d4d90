"""Image files that stay encoded: an array whose rows are decoded when they are read and are then owned by the reader.

Its cache entry is a folder with a few bytes per file: the path, and the state of the file when the samples were
fingerprinted. A file that has changed since is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ianvs.base.deep_images import ValueRange
from ianvs.base.errors import Location
from ianvs.exam.data.content_digests import Contents
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.data.decode import decode_labels, decode_picture, require_one_shape
from ianvs.exam.data.labels import Numbering
from ianvs.exam.data.listing import SourceError
from ianvs.processes.engines.engine import usable_cores

_BLOCK = 1 << 22  # bytes that one thread decodes at a time
_DIGEST = 16  # stored bytes of each file's SHA-256
_DRAWN = 64  # images of each part that are decoded before a run


@dataclass(frozen=True)
class Coding:
    """How the files of a column become arrays of one shape; enough to decode them in another process.

    Attributes:
        kind: "rgb" or "labels".
        size: (height, width) to which they are resized, or None.
        shape: Of each array.
        numberings: Numberings of segmentation masks.
        value_range: Of images of more than 8 bits, or None.
    """

    kind: str
    size: tuple[int, int] | None
    shape: tuple[int, ...]
    numberings: tuple[Numbering, ...] = ()
    value_range: ValueRange | None = None

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "numberings": [[each.classes, each.owner, each.values] for each in self.numberings]}

    @classmethod
    def from_json(cls, held: Mapping[str, Any]) -> Coding:
        numberings = [Numbering(*_tuples(numbering)) for numbering in held["numberings"]]
        return cls(**_tuples({**held, "numberings": numberings}))

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape)

    def decode(self, held: bytes, numbering: int, called: str) -> NDArray[np.uint8]:
        """Return the array of a file with the content `held`. Raises SourceError, which names the file as `called`."""
        if self.kind == "rgb":
            picture = decode_picture(called, self.size, held, self.value_range)
        else:
            picture = decode_labels(called, self.size, self.numberings[numbering], held)
        if picture.shape != self.shape:
            (height, width), (h, w) = self.shape[:2], picture.shape[:2]
            raise size_error(called, (h, w), "others are", (height, width))
        return picture


def size_error(path: str, actual: tuple[int, int], other: str, expected: tuple[int, int]) -> SourceError:
    """Return the error that an image has another size than others, in (height, width)."""
    (h, w), (height, width) = actual, expected
    message = (
        f"is {h}x{w} pixels (height x width), {other} {height}x{width}. "
        "Set `image_size: [height, width]` in the dataset to bring all images to one size."
    )
    return SourceError.single(message, Location(Path(path)), "mismatched-data")


class EncodedPictures:
    """(N, height, width, 3) uint8 images or (N, height, width) segmentation masks; each read decodes them again.

    It has the interface of a memory map of the same images. Raises SourceError if a file can't be decoded, has another
    size than the others, or was changed after it was listed.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, folder: Path) -> None:
        """Open `folder`, which `keep` has filled."""
        self.folder = folder
        self.coding = Coding.from_json(json.loads((folder / "coding.json").read_text()))
        self._ends = np.load(folder / "ends.npy", mmap_mode="r", allow_pickle=False)
        self._facts = np.load(folder / "facts.npy", mmap_mode="r", allow_pickle=False)
        self.digests = np.load(folder / "digests.npy", mmap_mode="r", allow_pickle=False)
        self.shape = (len(self._ends), *self.coding.shape)
        self.ndim = len(self.shape)
        self.nbytes = math.prod(self.shape)

    @staticmethod
    def keep(
        folder: Path, coding: Coding, paths: Sequence[str], file_contents: Contents, used: Sequence[int] | None = None
    ) -> None:
        """Fill `folder`.

        Args:
            folder: The folder.
            coding: How files become arrays.
            paths: The files.
            file_contents: The sizes, times and digests of the files.
            used: The position in `coding.numberings` of each file.
        """
        write_names(folder, paths)
        facts, digests = file_contents
        numbering = np.zeros(len(paths), np.int64) if used is None else np.asarray(used, np.int64)
        np.save(folder / "facts.npy", np.column_stack([facts, numbering]))
        np.save(folder / "digests.npy", digests[:, :_DIGEST])
        (folder / "coding.json").write_text(json.dumps(coding.to_json()))

    def __len__(self) -> int:
        return self.shape[0]

    def __reduce__(self) -> Any:
        return EncodedPictures, (self.folder,)

    @cached_property
    def _names(self) -> NDArray[np.uint8]:
        return np.memmap(self.folder / "names", np.uint8, "r")

    def path(self, index: int) -> str:
        start = int(self._ends[index - 1]) if index else 0
        return os.fsdecode(self._names[start : int(self._ends[index]) - 1].tobytes())

    def numbering(self, index: int) -> int:
        return int(self._facts[index, 2])

    def read(self, index: int) -> bytes:
        """Return the content of a file. Raises SourceError if its size, time and digest differ from the recorded
        ones.
        """
        path = self.path(index)
        size, modified, _ = self._facts[index].tolist()
        try:
            with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - ten thousand of them: Path is slow
                held = file.readall()
                same = (len(held), os.fstat(file.fileno()).st_mtime_ns) == (size, modified)
        except OSError as error:
            message = f"can't be read: {error.strerror}. Images stay encoded, so their files are read until the end."
            raise SourceError.single(message, Location(Path(path)), "unreadable-data") from None
        if not same and hashlib.sha256(held).digest()[:_DIGEST] != self.digests[index].tobytes():
            message = "was changed after the samples were listed. Run again: that is another exam."
            raise SourceError.single(message, Location(Path(path)), "changed-since-plan")
        return held

    def decoded(self, index: int) -> NDArray[np.uint8]:
        return self.coding.decode(self.read(index), self.numbering(index), self.path(index))

    def __getitem__(self, index: Any) -> NDArray[np.uint8]:
        if isinstance(index, int | np.integer):
            return self.decoded(range(len(self))[int(index)])
        return self.gather(np.arange(len(self))[index])

    def gather(self, rows: NDArray[np.int64] | None, threads: int = 0) -> NDArray[np.uint8]:
        """Return the images at `rows`; None: all. threads: 0: as many as there are cores."""
        rows = np.arange(len(self)) if rows is None else rows
        pictures = np.empty((len(rows), *self.coding.shape), np.uint8)

        def fill(places: range) -> None:
            for place in places:
                pictures[place] = self.decoded(int(rows[place]))

        in_threads(fill, len(rows), self.coding.row_bytes, threads or usable_cores())
        return pictures

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype or np.uint8, copy=False)

    def astype(self, dtype: DTypeLike, **how: Any) -> NDArray[Any]:
        return self[:].astype(dtype, **how)


def _tuples(held: Any) -> Any:
    """Return a value read from JSON with tuples in place of lists."""
    if isinstance(held, dict):
        return {name: _tuples(value) for name, value in held.items()}
    return tuple(map(_tuples, held)) if isinstance(held, list) else held


def write_names(folder: Path, paths: Iterable[str]) -> None:
    """Write the names of files, each followed by a zero byte, and the position where each ends."""
    ends, end = array("q"), 0
    with (folder / "names").open("wb") as names:
        for path in paths:
            end += names.write(os.fsencode(path) + b"\0")
            ends.append(end)
    np.save(folder / "ends.npy", np.array(ends, np.int64))


def encoded_in(values: object) -> EncodedPictures | None:
    """Return `values` if they are images that stay encoded, else None."""
    return values if isinstance(values, EncodedPictures) else None


def in_threads(do: Callable[[range], object], count: int, row_bytes: int, workers: int) -> None:
    """Call `do` on all of range(count), a block at a time, in threads that have ended on return.

    Decoding releases the interpreter lock.
    """
    block = max(1, min(256, _BLOCK // max(1, row_bytes)))
    blocks = [range(start, min(start + block, count)) for start in range(0, count, block)]
    if workers == 1 or len(blocks) < 2:
        for rows_block in blocks:
            do(rows_block)
        return
    with ThreadPoolExecutor(min(workers, len(blocks))) as pool:
        for _ in pool.map(do, blocks):
            pass


def try_pictures(dataset: Dataset, say: Callable[[str], object]) -> None:
    """Decode a few images of each part, drawn at random but always the same, with their segmentation masks.

    `say` receives their number. Raises SourceError with all that can't be decoded or differ in size.
    """
    problems, tried, total = [], 0, 0
    for number, part in enumerate((dataset.train, dataset.test)):
        x, y = encoded_in(part.x), encoded_in(part.y)
        if x is None:
            continue
        count = min(_DRAWN, len(x))
        drawn = np.sort(np.random.default_rng(number).choice(len(x), count, replace=False)).tolist()
        wrong: dict[int, SourceError] = {}

        def look(places: range) -> None:  # it is called before the next part is read
            for place in places:
                try:
                    x.decoded(drawn[place])  # noqa: B023
                    if y is not None:  # noqa: B023
                        require_one_shape(y.path(drawn[place]), x.path(drawn[place]), x.coding.size)  # noqa: B023
                        y.decoded(drawn[place])  # noqa: B023
                except SourceError as error:
                    wrong[place] = error  # noqa: B023

        in_threads(look, count, x.coding.row_bytes, usable_cores())
        problems += [problem for place in sorted(wrong) for problem in wrong[place].problems]
        tried, total = tried + count, total + len(x)
    if problems:
        raise SourceError(problems)
    if total:
        say(f"{tried} of {total} images were decoded, drawn at random; the others are when they are read")
