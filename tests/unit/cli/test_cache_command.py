"""`ianvs cache`: what lies there, and room that is made only when somebody says so."""

import os

import pytest

from ianvs.cli.command_line import main
from ianvs.exam import data
from tests.unit.exam.data.pictures import two_classes


@pytest.fixture
def workspace(tmp_path):
    """One with decoded pictures of two parts, of which those of one were not used for a hundred days."""
    data.load(two_classes(tmp_path / "data"), tmp_path / "ws" / "cache")
    old, _ = sorted((tmp_path / "ws" / "cache").glob("rgb-*[!k]"))
    os.utime(old, (0, 0))
    return tmp_path / "ws"


def test_everything_is_listed_with_its_size_and_age(workspace, capsys):
    assert main(["cache", str(workspace)]) == 0
    said = capsys.readouterr().out
    assert said.count("decoded pictures") == 2
    assert "used   0.0 days ago" in said
    assert "ws/cache: 2 entries, " in said.splitlines()[-1]


def test_what_is_old_is_shown_first_and_removed_when_that_is_said(workspace, capsys):
    def kept():
        return len(list((workspace / "cache").glob("rgb-*[!k]")))

    assert main(["cache", str(workspace), "--prune", "30"]) == 0
    assert "not used for 30 days: 1 entry" in capsys.readouterr().out
    assert kept() == 2
    assert main(["cache", str(workspace), "--prune", "30", "--yes"]) == 0
    assert "removed: 1 entry" in capsys.readouterr().out
    assert kept() == 1


def test_a_folder_without_a_cache_and_a_yes_to_nothing_are_refused(tmp_path, workspace, capsys):
    assert main(["cache", str(tmp_path)]) != 0
    assert "is no workspace that holds a cache" in capsys.readouterr().err
    assert main(["cache", str(workspace), "--yes"]) != 0
    assert "--prune DAYS" in capsys.readouterr().err
    assert main(["cache", str(workspace), "--prune", "-3"]) != 0
    assert "expected a number of days" in capsys.readouterr().err
