"""Files are there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.store.files import read_json, replace_folder, write_atomic, write_json


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


def test_half_a_json_file_reads_as_none(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"a": [1, 2]})
    assert read_json(path) == {"a": [1, 2]}
    path.write_bytes(path.read_bytes()[:7])
    assert read_json(path) is None
    assert read_json(tmp_path / "missing.json") is None


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
