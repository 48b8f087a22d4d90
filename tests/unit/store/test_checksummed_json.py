"""What is stored is believed only if it is what was stored; "not there" is another thing than "can't be read"."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from ianvs.base.digests import file_state, has_changed
from ianvs.base.errors import DamagedError, IanvsError
from ianvs.store.checksummed_json import as_record, read_checksummed, write_checksummed
from tests.edits import edited
from tests.errors import errors_of


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_checksummed(path, "a", {"rows": [(1, 2.5), None], "between": {10: 1, 2: 0}})
    found = read_checksummed(path, "a")
    assert found is not None
    assert (found["rows"], found["between"]) == ([[1, 2.5], None], {"10": 1, "2": 0})
    assert read_checksummed(tmp_path / "missing.json", "a") is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b'{"a": 1}', b"\xff\xfe", b"[" * 100_000, b'{"a"'])
def test_other_content_is_refused_with_the_name_of_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert errors_of(read_checksummed, tmp_path / "a.json", "a") == [("damaged-file", "")]


def test_a_number_that_was_changed_by_hand_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_checksummed(path, "a", {"accuracy": 0.5})
    path.write_text(edited(path.read_text(), "0.5", "0.9"))
    with pytest.raises(DamagedError):
        read_checksummed(path, "a")


def test_a_file_in_another_ones_place_is_not_believed(tmp_path: Path) -> None:
    write_checksummed(tmp_path / "a.json", "a", {"accuracy": 0.5})
    (tmp_path / "a.json").rename(tmp_path / "b.json")
    with pytest.raises(DamagedError):
        read_checksummed(tmp_path / "b.json", "b")


def test_what_may_not_be_read_is_not_missing_and_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_checksummed(path, "a", {})

    def closed(path: Path | str, mode: str, buffering: int) -> NoReturn:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("ianvs.base.digests.open", closed, raising=False)
    with pytest.raises(IanvsError, match=r"a\.json.*denied") as error:
        read_checksummed(path, "a")
    assert not isinstance(error.value, DamagedError)


def test_a_field_of_a_later_version_is_left_out_and_a_lacking_one_is_refused(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Record:
        name: str

    assert as_record(Record, {"name": "a", "colour": "blue"}, tmp_path) == Record("a")
    assert errors_of(as_record, Record, {"colour": "blue"}, tmp_path) == [("damaged-file", "")]


def test_a_file_is_read_again_only_where_it_looks_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(b"12345")
    before = json.loads(json.dumps(file_state(path)))
    monkeypatch.setattr(Path, "open", None)
    assert not has_changed(path, before)
    monkeypatch.undo()
    path.touch()
    assert not has_changed(path, before)  # another time, the same content
    path.write_bytes(b"12745")
    assert has_changed(path, before)
    path.unlink()
    assert has_changed(path, before)
