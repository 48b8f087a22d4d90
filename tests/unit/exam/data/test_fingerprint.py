"""A fingerprint changes when, and only when, the samples do."""

from __future__ import annotations

import builtins
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ianvs.config.spec import DatasetSpec, SourceSpec
from ianvs.exam import data
from ianvs.exam.data.content_digests import read_contents
from tests.edits import edited
from tests.unit.exam.data.pictures import two_classes, write_picture


@pytest.fixture
def spec(tmp_path):
    return two_classes(tmp_path / "set")


def of(spec, tmp_path, cache="cache"):
    return data.fingerprint(spec, tmp_path / cache)


def settle(folder):
    """As if the files had been written a minute ago."""
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - 60, time.time() - 60))


def test_it_does_not_depend_on_where_the_folder_lies(spec, tmp_path):
    before = of(spec, tmp_path)
    shutil.move(tmp_path / "set", tmp_path / "moved")
    moved = DatasetSpec(
        train=(SourceSpec(tmp_path / "moved" / "train.txt", "index"),),
        test=(SourceSpec(tmp_path / "moved" / "test.txt", "index"),),
    )
    assert of(moved, tmp_path) == before
    assert of(moved, tmp_path, "another cache") == before


def test_it_changes_with_the_bytes_of_a_picture(spec, tmp_path):
    settle(tmp_path / "set")
    before = of(spec, tmp_path)
    write_picture(tmp_path / "set/test/1.png", seed=77)
    assert of(spec, tmp_path) != before


def test_it_changes_with_a_label_in_the_index(spec, tmp_path):
    before = of(spec, tmp_path)
    index = spec.train[0].path
    index.write_text(edited(index.read_text(), "0.png cat", "0.png dog"))
    assert of(spec, tmp_path) != before


@pytest.mark.parametrize("settings", [{"image_size": (3, 3)}, {"classes": ("cat", "dog")}, {"label": "y"}])
def test_it_changes_with_what_shapes_the_samples(spec, tmp_path, settings):
    assert of(replace(spec, **settings), tmp_path) != of(spec, tmp_path)


def test_it_changes_with_the_domain_of_a_source(spec, tmp_path):
    named = replace(spec, train=tuple(replace(source, domain="day") for source in spec.train))
    assert of(named, tmp_path) != of(spec, tmp_path)


def test_a_second_one_reads_no_picture(spec, tmp_path, monkeypatch):
    settle(tmp_path / "set")
    before = of(spec, tmp_path)
    really_open = builtins.open

    def open_no_picture(file, *args, **kwargs):
        assert not str(file).endswith(".png")
        return really_open(file, *args, **kwargs)

    monkeypatch.setattr(builtins, "open", open_no_picture)
    assert of(spec, tmp_path) == before


def test_a_picture_written_a_moment_ago_is_read_again(spec, tmp_path):
    """Its modification time may be the same after the next change."""
    picture = tmp_path / "set/train/0.png"
    before, stat = of(spec, tmp_path), picture.stat()
    content = bytearray(picture.read_bytes())
    content[-20] ^= 1
    picture.write_bytes(content)
    os.utime(picture, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert of(spec, tmp_path) != before


def test_a_damaged_memo_only_costs_time(spec, tmp_path):
    settle(tmp_path / "set")
    before = of(spec, tmp_path)
    for memo in (tmp_path / "cache" / "digests").glob("*.json"):
        memo.write_text('{"half": ')
    assert of(spec, tmp_path) == before


def test_ten_thousand_known_files_take_well_under_a_second(tmp_path):
    folder = tmp_path / "many"
    (folder / "p").mkdir(parents=True)
    lines = []
    for i in range(10_000):
        (folder / "p" / f"{i}.png").write_bytes(b"%d" % i)
        lines.append(f"p/{i}.png {i % 7}")
    (folder / "index.txt").write_text("\n".join(lines))
    settle(folder)
    source = SourceSpec(folder / "index.txt", "index")
    spec = DatasetSpec(train=(source,), test=(source,))
    before = of(spec, tmp_path)
    started = time.process_time()
    assert of(spec, tmp_path) == before
    assert time.process_time() - started < 2.5  # both parts; about 0.4 s of the processor


def test_arrays_are_known_by_their_file(tmp_path):
    source = SourceSpec(tmp_path / "a.npz", "data")
    spec = DatasetSpec(train=(source,), test=(source,))
    found = []
    for value in (1, 2):
        np.savez(source.path, x=np.full((2, 2), value), y=[0, 1])
        found.append(of(spec, tmp_path))
    assert found[0] != found[1]


def test_who_waits_for_files_to_be_read_is_told_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ianvs.exam.data.content_digests.REPORT_SECONDS", 0.0)
    paths = [tmp_path / f"{n}.bin" for n in range(3)]
    for path in paths:
        path.write_bytes(bytes(2000))
    told: list[str] = []
    read_contents(list(map(str, paths)), tmp_path / "cache", told.append)
    assert [one.partition("/s")[0].rpartition(",")[0] for one in told] == [
        f"reading files, {done} kB of 6 kB" for done in (2, 4, 6)
    ]
    assert all(one.endswith(" left") for one in told)
    for path in paths:
        os.utime(path, ns=(0, 0))  # long settled
    read_contents(list(map(str, paths)), tmp_path / "cache")
    told.clear()
    read_contents(list(map(str, paths)), tmp_path / "cache", told.append)
    assert not told
