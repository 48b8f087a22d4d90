"""Images that stay encoded until their pixels are read."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ianvs.base.deep_images import is_deep
from ianvs.base.errors import DataError, first_line, shown_path

MARK = "<image>"  # position of an image in a text (Liu et al. 2023, LLaVA)
_NPY_MAGIC = b"\x93NUMPY"


class Picture:
    """An encoded image: the bytes of a file, the path of a file that is read on access, or an array in numpy's format.

    `sha256` is the hexadecimal digest of the bytes. If a file's content no longer has it, DataError is raised.
    """

    def __init__(
        self,
        held: bytes | memoryview | None = None,
        file: Path | None = None,
        sha256: str = "",
        size: tuple[int, int] | None = None,
    ) -> None:
        self._held, self.file, self._size = held, file, size
        if sha256:
            self.sha256 = sha256

    @classmethod
    def from_value(cls, picture: Any) -> "Picture":
        """Convert an (H, W, 3) uint8 array, or anything that numpy can convert to one."""
        if isinstance(picture, Picture):
            return picture
        buffer = BytesIO()
        np.save(buffer, np.ascontiguousarray(picture, np.uint8), allow_pickle=False)
        return cls(buffer.getvalue())

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self._held if self._held is not None else self._read()).hexdigest()

    @property
    def held(self) -> bytes:
        if self._held is not None:
            return bytes(self._held)
        content = self._read()
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise DataError(
                f"{self}: was changed after the samples were listed. Run again: that is another exam.",
                code="changed-since-plan",
            )
        return content

    @property
    def size(self) -> tuple[int, int]:
        """(height, width), from the header of the file."""
        if self._size is not None:
            return self._size
        held = self._held if self._held is not None else self._read()
        size: tuple[int, int] = self._opened(held, lambda image: (_shallow(image).height, image.width))
        return size

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """(H, W, 3) RGB, decoded at each access."""

        def decoded(image: Any) -> NDArray[np.uint8]:
            return np.array(_shallow(image).convert("RGB"), np.uint8)

        pixels: NDArray[np.uint8] = self._opened(self.held, decoded)
        return pixels

    def named(self) -> "Picture":
        """Return a copy without the bytes, to be stored by digest; a file is read on access."""
        return Picture(None if self.file else b"", self.file, self.sha256, None if self.file else self.size)

    def apart(self) -> "Picture":
        """Return a copy with bytes of its own, so that no larger buffer stays in memory."""
        return Picture(self.held, None, self.sha256)

    def _opened(self, held: bytes | memoryview, look: Any) -> Any:
        from PIL import Image

        try:
            if bytes(held[: len(_NPY_MAGIC)]) == _NPY_MAGIC:
                return look(Image.fromarray(np.load(BytesIO(held), allow_pickle=False)))
            with Image.open(BytesIO(held)) as image:
                return look(image)
        except (OSError, SyntaxError, ValueError, TypeError, Image.DecompressionBombError) as error:
            raise DataError(
                f"{self}: can't be decoded as an image ({first_line(error)}).", code="unreadable-file"
            ) from None

    def _read(self) -> bytes:
        try:
            return (self.file or Path()).read_bytes()
        except OSError as error:
            raise DataError(f"{self}: can't be read: {error.strerror}.", code="unreadable-file") from None

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.pixels.astype(dtype or np.uint8, copy=False)

    def __str__(self) -> str:
        return f"image {self.sha256[:12]}" if self.file is None else shown_path(self.file)

    def __repr__(self) -> str:  # part of the digests of samples, so it depends on the content alone
        return f"Picture({self.sha256})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Picture) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # it is immutable

    def __getstate__(self) -> dict[str, Any]:
        held = self._held if self._held is None else bytes(self._held)
        return {"_held": held, "file": self.file, "_size": self._size, "sha256": self.sha256}


def _shallow(image: Any) -> Any:
    """Return a PIL image of 8 bits a channel. Raises ValueError for more bits, which Pillow would clip."""
    if is_deep(image):
        raise ValueError("it has more than 8 bits a channel; save it with 8")
    return image


class Pictures(Sequence[NDArray[np.uint8]]):
    """(H, W, 3) uint8 images of a conversation, each decoded when it is read. encoded: the files they come from."""

    def __init__(self, encoded: Iterable[Picture]) -> None:
        self.encoded = tuple(encoded)

    def __getitem__(self, index: Any) -> Any:
        return (
            self.encoded[index].pixels
            if not isinstance(index, slice)
            else [picture.pixels for picture in self.encoded[index]]
        )

    def __len__(self) -> int:
        return len(self.encoded)

    def named(self) -> "Pictures":
        """Return the images without their bytes."""
        return Pictures(picture.named() for picture in self.encoded)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pictures) and self.encoded == other.encoded

    def __hash__(self) -> int:
        return hash(self.encoded)

    def __repr__(self) -> str:
        return f"Pictures({list(self.encoded)})"

    def __deepcopy__(self, memo: object) -> Self:
        return self
