"""Decoding that was interrupted goes on where it was, and does not begin where there is no room."""

import os
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from ianvs.base.errors import DataError
from ianvs.exam.data import cache
from ianvs.exam.data.cache import cached_pictures
from ianvs.exam.data.cache_entries import cache_entries, remove_entries
from tests.errors import errors_of
from tests.unit.exam.data.pictures import write_picture


@pytest.fixture
def pictures(tmp_path, monkeypatch):
    """Ten files; two pictures are a shard."""
    monkeypatch.setattr(cache, "SHARD", 2 * 6 * 5 * 3)
    return [str(write_picture(tmp_path / f"{index}.png", seed=index)) for index in range(10)]


def interrupted_after(count, monkeypatch):
    """Decoding ends as if somebody had pressed Ctrl-C, once so many pictures are decoded; which were."""
    real, seen = cache.decode_picture, []

    def decode(path, size, **range_of_values):
        if len(seen) == count:
            raise KeyboardInterrupt
        seen.append(Path(path).name)
        return real(path, size, **range_of_values)

    monkeypatch.setattr(cache, "decode_picture", decode)
    monkeypatch.setattr(cache, "ThreadPoolExecutor", lambda: cache_of_one_thread())
    return seen


def cache_of_one_thread():
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1)


def test_an_interrupted_decoding_goes_on_after_the_last_shard(tmp_path, pictures, monkeypatch):
    with monkeypatch.context() as patched:
        interrupted_after(7, patched)
        with pytest.raises(KeyboardInterrupt):
            cached_pictures(pictures, None, tmp_path / "cache")
    [unfinished] = cache_entries(tmp_path / "cache")
    assert unfinished.unfinished
    with monkeypatch.context() as patched:
        seen = interrupted_after(100, patched)
        found = cached_pictures(pictures, None, tmp_path / "cache")
    assert seen == ["0.png", *(f"{index}.png" for index in range(6, 10))]  # the first tells the shape
    np.testing.assert_array_equal(found, cached_pictures(pictures, None, tmp_path / "other"))
    assert [one.unfinished for one in cache_entries(tmp_path / "cache")] == [False]


def test_broken_pictures_are_named_together_also_where_the_decoding_was_interrupted_after_one(
    tmp_path, pictures, monkeypatch
):
    for index in (1, 9):
        Path(pictures[index]).write_bytes(b"no picture")
    with monkeypatch.context() as patched:
        interrupted_after(7, patched)
        with pytest.raises(KeyboardInterrupt):
            cached_pictures(pictures, None, tmp_path / "cache")
    with pytest.raises(DataError) as refused:
        cached_pictures(pictures, None, tmp_path / "cache")
    assert [f"{index}.png" in str(refused.value) for index in (0, 1, 9)] == [False, True, True]


def test_a_record_that_was_damaged_is_not_believed(tmp_path, pictures, monkeypatch):
    with monkeypatch.context() as patched:
        interrupted_after(7, patched)
        with pytest.raises(KeyboardInterrupt):
            cached_pictures(pictures, None, tmp_path / "cache")
    [record] = (tmp_path / "cache").glob("*/done.json")
    record.write_text(record.read_text().replace("6", "8"))
    found = cached_pictures(pictures, None, tmp_path / "cache")
    np.testing.assert_array_equal(found, cached_pictures(pictures, None, tmp_path / "other"))


def test_without_room_nothing_is_decoded_and_the_remedy_is_told(tmp_path, pictures, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(cache.shutil, "disk_usage", lambda _: usage(10**12, 0, cache._RESERVE + 800))
    assert errors_of(cached_pictures, pictures, None, tmp_path / "cache") == [("insufficient-resources", "")]
    assert not cache_entries(tmp_path / "cache")


def test_what_nobody_uses_can_be_removed_and_is_made_again(tmp_path, pictures):
    before = np.array(cached_pictures(pictures, None, tmp_path / "cache"))
    [one] = cache_entries(tmp_path / "cache")
    assert one.description == "decoded images"
    assert not one.unused_for(0)  # somebody may be about to open it
    os.utime(one.folder, (0, 0))
    [old] = cache_entries(tmp_path / "cache")
    assert old.unused_for(1000)
    assert remove_entries([old]) == [old]
    assert not cache_entries(tmp_path / "cache")
    np.testing.assert_array_equal(cached_pictures(pictures, None, tmp_path / "cache"), before)


def test_what_was_used_again_is_not_old(tmp_path, pictures):
    cached_pictures(pictures, None, tmp_path / "cache")
    [one] = cache_entries(tmp_path / "cache")
    os.utime(one.folder, (0, 0))
    cached_pictures(pictures, None, tmp_path / "cache")
    [again] = cache_entries(tmp_path / "cache")
    assert not again.unused_for(0.5)
