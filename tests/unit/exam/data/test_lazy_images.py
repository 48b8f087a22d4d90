"""A case that knows the fingerprint of its pictures takes them as they were decoded, and reads no file of theirs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ianvs.exam import data
from tests.unit.exam.data.pictures import two_classes, write_picture


def test_the_same_samples_come_without_a_look_at_their_files(tmp_path: Path) -> None:
    spec, cache = two_classes(tmp_path), tmp_path / "cache"
    first = data.load(spec, cache)
    for file in tmp_path.glob("*/*.png"):
        file.unlink()
    kept = data.load(spec, cache, fingerprint=first.fingerprint)
    for one, other in ((first.train, kept.train), (first.test, kept.test)):
        assert np.array_equal(one.x, other.x)
        assert np.array_equal(one.y, other.y)
        assert one.ids.tolist() == other.ids.tolist()
    assert (kept.classes, kept.kind, kept.folders) == (first.classes, first.kind, first.folders)
    assert isinstance(kept.train.x, np.memmap)


def test_pictures_that_a_case_takes_are_in_use(tmp_path: Path) -> None:
    spec, cache = two_classes(tmp_path), tmp_path / "cache"
    first = data.load(spec, cache)
    folders = [file.parent for file in cache.glob("*/digests.json")]
    assert len(folders) > 2  # decoded pictures of both parts, and the rest
    for folder in folders:
        os.utime(folder, (0, 0))
    data.load(spec, cache, fingerprint=first.fingerprint)
    assert all(folder.stat().st_mtime > 0 for folder in folders)


def test_other_files_than_were_planned_are_read(tmp_path: Path) -> None:
    spec, cache = two_classes(tmp_path), tmp_path / "cache"
    data.load(spec, cache)
    write_picture(tmp_path / "train" / "0.png", np.zeros((6, 5, 3), np.uint8))
    planned = data.fingerprint(spec, cache)
    assert not data.load(spec, cache, fingerprint=planned).train.x[0].any()
