"""Files are there whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ianvs.store.files import replace_folder, write_atomic, write_json


def test_an_unchanged_file_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert write_atomic(path, b"one")
    before = path.stat().st_mtime_ns, path.stat().st_ino
    assert not write_atomic(path, b"one")
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    assert write_atomic(path, b"two")
    assert path.read_bytes() == b"two"


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomic(path, b"old")

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_a_folder_is_as_open_as_the_umask_lets_it_be(tmp_path: Path) -> None:
    """That with which the process began: an author's code may set another."""
    code = f"""
import os, pathlib
from ianvs.store import replace_folder
os.umask(0o777)
with replace_folder(pathlib.Path({str(tmp_path / "folder")!r})):
    pass
"""
    subprocess.run([sys.executable, "-c", code], check=True, umask=0o027)
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


def test_nan_is_refused_since_it_is_not_json(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "file.json", float("nan"))


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with replace_folder(tmp_path / "folder") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "folder").exists()
    assert (tmp_path / "folder" / "a").read_text() == "1"
    with pytest.raises(RuntimeError), replace_folder(tmp_path / "folder") as folder:
        (folder / "a").write_text("2")
        raise RuntimeError
    assert (tmp_path / "folder" / "a").read_text() == "1"
    assert [found.name for found in tmp_path.iterdir()] == ["folder"]


def test_folders_that_several_put_at_one_place_at_once_do_not_meet(tmp_path: Path) -> None:
    def put(name: str) -> None:
        for _ in range(200):
            with replace_folder(tmp_path / "folder") as folder:
                (folder / name).write_text("")

    with ThreadPoolExecutor() as pool:
        list(pool.map(put, "abcd"))
    assert len(list((tmp_path / "folder").iterdir())) == 1
    assert [found.name for found in tmp_path.iterdir()] == ["folder"]


def test_all_content_is_on_the_disk_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, rename, replace = os.fsync, Path.rename, Path.replace

    def noted_sync(handle: int) -> None:
        done.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        fsync(handle)

    monkeypatch.setattr("os.fsync", noted_sync)
    monkeypatch.setattr(Path, "rename", lambda a, b: done.append("renamed") or rename(a, b))
    monkeypatch.setattr(Path, "replace", lambda a, b: done.append("renamed") or replace(a, b))
    with replace_folder(tmp_path / "folder") as folder:
        (folder / "model").mkdir()
        (folder / "model" / "weights").write_text("1")
        (folder / "round.json").write_text("{}")
    assert sorted(done[:-1]) == ["round.json", "weights"]
    assert done[-1] == "renamed"
    done.clear()
    write_atomic(tmp_path / "file", b"x")
    assert done[0].startswith(".file.")
    assert done[1:] == ["renamed"]


def test_a_umask_that_a_plugin_sets_makes_no_file_unreadable(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        write_atomic(tmp_path / "deep" / "file", b"x")
        os.umask(0o777)
        with replace_folder(tmp_path / "folder") as folder:
            (folder / "a").write_text("1")
    finally:
        os.umask(before)
    for path in (tmp_path / "deep", tmp_path / "deep" / "file", tmp_path / "folder", tmp_path / "folder" / "a"):
        assert path.stat().st_mode & 0o400, path
