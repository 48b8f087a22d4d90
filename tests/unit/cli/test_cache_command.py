"""`ianvs cache`: what lies there, and room that is made only when somebody says so."""

import os
import re

import pytest

from ianvs.cli.command_line import main
from ianvs.exam import data
from tests.errors import printed
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
    assert said.count("decoded images") == 2
    assert " 0.0 days" in said
    assert re.search(r"ws/cache: 3\b", said.splitlines()[-1])


def test_what_is_old_is_shown_first_and_removed_when_that_is_said(workspace, capsys):
    def kept():
        return len(list((workspace / "cache").glob("rgb-*[!k]")))

    assert main(["cache", str(workspace), "--prune", "30"]) == 0
    assert re.search(r"\b30 days: 1\b", capsys.readouterr().out)
    assert kept() == 2
    assert main(["cache", str(workspace), "--prune", "30", "--yes"]) == 0
    assert re.search(r": 1\b", capsys.readouterr().out)
    assert kept() == 1


def test_a_folder_without_a_cache_and_a_yes_to_nothing_are_refused(tmp_path, workspace, capsys):
    assert main(["cache", str(tmp_path)]) != 0
    printed(capsys.readouterr().err)
    assert main(["cache", str(workspace), "--yes"]) != 0
    printed(capsys.readouterr().err)
    assert main(["cache", str(workspace), "--prune", "-3"]) != 0
    printed(capsys.readouterr().err)
