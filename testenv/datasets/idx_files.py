"""The IDX files of MNIST and similar datasets: as distributed, gzipped or not, in one folder or in torchvision's
layout.

The format is that of LeCun's page on MNIST: two zero bytes, a type, the number of axes, their lengths, big-endian, and
the values in C order. These files only use type 8, unsigned bytes.
"""

import gzip
import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError
from ianvs.exam.data.fingerprint import digest_of, file_digests, read_memo, write_memo

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_PACKED = ".gz"


def find_files(folders: Iterable[Path]) -> list[Path] | None:
    """Return the four files in the first of `folders` that has all of them; None if none has."""
    for folder in folders:
        files = [_existing(folder / name) for name in FILES]
        if None not in files:
            return [path for path in files if path is not None]
    return None


def content_digests(files: Sequence[Path], cache_dir: Path) -> list[str]:
    """Return the SHA-256 of the unpacked content of each file, so gzipped and plain files are equal."""
    digests = file_digests([os.fspath(path) for path in files], cache_dir)
    return [
        _unpacked_digest(path, digest, cache_dir) if path.suffix == _PACKED else digest
        for path, digest in zip(files, digests, strict=True)
    ]


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the array in an IDX file of unsigned bytes, which may be gzipped. Raises DataError that names the file."""
    try:
        content = _content(path)
        zeros, kind, axes = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{axes}I", content, 4)
        if (zeros, kind) != (0, 8):
            raise ValueError("it is no IDX file of unsigned bytes")
        return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)
    except (OSError, EOFError, zlib.error, struct.error, ValueError) as error:
        raise DataError(f"{path} can't be read: {error}.", code="unreadable-data") from None


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == _PACKED else path.read_bytes()


def _existing(path: Path) -> Path | None:
    packed = path.with_name(path.name + _PACKED)
    return next((file for file in (path, packed) if file.is_file()), None)


def _unpacked_digest(path: Path, digest: str, cache_dir: Path) -> str:
    """Return the SHA-256 of the content of a gzipped file with the digest `digest`; computed once and cached."""
    memo = cache_dir / "digests" / f"{digest_of(['gzip', digest])[:32]}.json"
    unpacked = read_memo(memo)
    if not isinstance(unpacked, str):
        try:
            unpacked = hashlib.sha256(_content(path)).hexdigest()
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path} can't be unpacked: {error}.", code="unreadable-data") from None
        write_memo(memo, unpacked)
    return unpacked
