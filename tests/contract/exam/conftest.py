"""A fixture for tests that name locations: relative to their own folder, as in "index.txt:2:1"."""

from pathlib import Path

import pytest


@pytest.fixture
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
