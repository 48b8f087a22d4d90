"""Warnings about samples that can be read but look wrong; a run continues.

Every sample is read once per dataset, a block at a time, keeping a digest of 8 bytes of each. The warnings are cached
under the dataset's fingerprint.
"""

import hashlib
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import one_line
from ianvs.exam.data.dataset import Dataset, Table
from ianvs.exam.data.encoded_pictures import encoded_in
from ianvs.exam.data.fingerprint import digest_of, read_memo, write_memo
from ianvs.exam.data.mask_warnings import mask_warnings

FOLDER = "doubts"  # of the cache
SHARED = "shared samples"  # name of the warning about something that a scenario may intend

_VERSION = 2  # raise it when the checks change
_BLOCK_BYTES = 1 << 26
_BLOCK = 1 << 16  # samples, at most
_DRAWN = 64


def data_warnings_of(fingerprint: str, cache_dir: Path) -> dict[str, str] | None:
    """Return warnings by name; None if the dataset has not been checked."""
    doubts: dict[str, str] | None = read_memo(_memo(fingerprint, cache_dir))
    return doubts


def find_data_warnings(dataset: Dataset, cache_dir: Path) -> None:
    """Check every sample, unless that was done before."""
    if data_warnings_of(dataset.fingerprint, cache_dir) is None:
        write_memo(_memo(dataset.fingerprint, cache_dir), _warnings_by_code(dataset))


def _memo(fingerprint: str, cache_dir: Path) -> Path:
    return cache_dir / FOLDER / f"{digest_of([_VERSION, fingerprint])[:32]}.json"


def _warnings_by_code(dataset: Dataset) -> dict[str, str]:
    train, test, names = dataset.train, dataset.test, dataset.classes
    doubts: dict[str, str] = {}
    if names and train.y.dtype != object:
        counts = [_counts(samples) for samples in (train, test)]
        taught, tested = (np.isin(np.arange(len(names)), np.flatnonzero(count)) for count in counts)
        if len(untaught := [names[index] for index in np.flatnonzero(tested > taught)]):
            doubts["untaught classes"] = (
                f"no training sample is of {one_line(untaught)}, and test samples are: nothing teaches it. Take these "
                "out of the test part, or look at how the labels are written."
            )
        if dataset.ignore_index is not None:
            doubts |= mask_warnings(counts[0] + counts[1], dataset)
        if taught.sum() == 1 and "ignored classes" not in doubts:
            only = names[int(taught.argmax())]
            doubts["one class"] = f"all training samples are of one class, '{only}': there is nothing to tell apart."
    (gaps, taught_digests), (gaps_in_test, digests) = _sampled_rows(train), _sampled_rows(test)
    for part, samples, broken in (("training", train, gaps), ("test", test, gaps_in_test)):
        if broken.size:
            doubts[f"gaps in the {part} part"] = (
                f"{broken.size} of {len(samples)} {part} samples hold nan or infinite numbers, such as "
                f"'{samples.ids[broken[0]]}': losses and answers become nan. Fill the gaps, or take the samples out."
            )
    shared = np.flatnonzero(np.isin(digests, taught_digests))
    if shared.size and not dataset.test_repeats_train:
        doubts[SHARED] = (
            f"{shared.size} of {len(test)} test samples are training samples too, such as '{test.ids[shared[0]]}': a "
            "score on them tells what was remembered. Take them out of one of the parts."
        )
    return doubts


def _counts(samples: Table) -> NDArray[np.int64]:
    """Return (256,) or more numbers of samples, or of pixels of masks, by class; at 255 the pixels without a class."""
    if samples.y.ndim == 1:
        return np.bincount(samples.y, minlength=256)
    drawn = np.unique(np.linspace(0, len(samples) - 1, _DRAWN).astype(np.int64))  # of images that stay encoded
    pictures = samples.y[drawn] if encoded_in(samples.y) is not None else samples.y
    total = np.zeros(256, np.int64)
    for picture in pictures:
        total += np.bincount(picture.reshape(-1), minlength=256)
    return total


def _sampled_rows(samples: Table) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return (positions of samples with numbers that are not finite, (N,) digests of all samples)."""
    if (encoded := encoded_in(samples.x)) is not None:  # equal files are equal images, and integers are finite
        prefixes = encoded.digests[:, :8].copy()
        return np.empty(0, np.int64), prefixes.view(np.uint64)[:, 0]
    x, size = samples.x, samples.x.dtype.itemsize * math.prod(samples.x.shape[1:])
    block = max(1, min(_BLOCK, _BLOCK_BYTES // max(1, size)))
    broken: list[int] = []
    digests = np.empty(len(x), dtype=np.uint64)
    for start in range(0, len(x), block):
        values = np.ascontiguousarray(x[start : start + block])
        flat = values.reshape(len(values), -1)
        if values.dtype.kind == "f":
            broken += (start + np.flatnonzero(~np.isfinite(flat).all(axis=1))).tolist()
        for index, row in enumerate(flat, start):
            # The digest is that of an array, or of question and answer, since a question alone may occur in both parts.
            content = row.data.cast("B") if row.dtype != object else repr((row[0], samples.y[index])).encode()
            digests[index] = int.from_bytes(hashlib.blake2b(content, digest_size=8).digest())
    return np.array(broken, dtype=np.int64), digests
