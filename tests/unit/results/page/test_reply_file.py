"""replies.csv as a stream: written anew only of what has changed, compressed where it is large."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from ianvs.results.page import reply_file
from ianvs.results.page.reply_file import write_reply_file


class Never:
    """A text that must not be read."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("it is there already")


def text(path: Path | None) -> str:
    assert path is not None
    return gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()


@pytest.fixture(params=[100, 5], ids=["small", "large"])
def largest(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(reply_file, "LARGEST", request.param)
    return int(request.param)


def test_a_file_above_the_limit_is_compressed(tmp_path: Path, largest: int) -> None:
    path = write_reply_file(tmp_path, [("head", ["a,b\n"]), ("one", ["1,", "2\n"])])
    assert path == tmp_path / ("replies.csv" if largest == 100 else "replies.csv.gz")
    assert text(path) == "a,b\n1,2\n"
    assert sum(one.name.startswith("replies") for one in tmp_path.iterdir()) == 1


def test_what_has_not_changed_is_not_read_again(tmp_path: Path, largest: int) -> None:
    write_reply_file(tmp_path, [("one", ["1\n"]), ("two", ["é\n" * 3]), ("three", ["3\n"])])
    changed: Iterable[str] = ["4\n"]
    for _ in range(2):
        pieces = [("three", Never()), ("two", Never()), ("four", changed)]
        assert text(write_reply_file(tmp_path, pieces)) == "3\né\né\né\n4\n"
        changed = Never()


def test_it_becomes_large_and_small_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply_file, "LARGEST", 5)
    for more, name in (("", "replies.csv"), ("22222222\n", "replies.csv.gz"), ("", "replies.csv")):
        path = write_reply_file(tmp_path, [("one", ["1\n"]), (more, [more])])
        assert (path, text(path)) == (tmp_path / name, f"1\n{more}")
        assert len(list(tmp_path.glob("replies*"))) == 1


def test_a_file_that_was_changed_is_written_anew(tmp_path: Path, largest: int) -> None:
    path = write_reply_file(tmp_path, [("one", ["1\n"])])
    assert path is not None
    path.write_bytes(b"something else")
    assert text(write_reply_file(tmp_path, [("one", ["1\n"])])) == "1\n"


def test_nothing_is_left_where_there_are_no_replies_any_more(tmp_path: Path, largest: int) -> None:
    write_reply_file(tmp_path, [("one", ["1\n"])])
    assert write_reply_file(tmp_path, []) is None
    assert not list(tmp_path.iterdir())
