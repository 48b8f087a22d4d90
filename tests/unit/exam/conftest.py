"""Tests run in their own folder, so that locations are relative to it: "index.txt:2:1"."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
