"""Folders of authors hold more than files: dangling links, folders called x.py, sockets."""

import os
import socket
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from ianvs.base.source_files import read_source, regular_files
from ianvs.plugins.source import source_of
from ianvs.testalgorithms.adapters.adapter_contracts import Mammoth, Pilot
from tests.errors import errors_of


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("models", "utils", "backbone", "exps"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(f"# {folder}\n")
    return tmp_path


def clutter(folder: Path) -> None:
    """Everything that a glob of python files may also yield."""
    (folder / "models" / "gone.py").symlink_to(folder / "nowhere.py")
    (folder / "exps" / "gone.json").symlink_to(folder / "nowhere.json")
    (folder / "models" / "round.py").symlink_to("round.py")
    (folder / "backbone" / "folder.py").mkdir()
    os.mkfifo(folder / "utils" / "pipe.py")
    with tempfile.TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/s")
        os.link(f"{short}/s", folder / "utils" / "socket.py")


@pytest.mark.parametrize("contract", [Mammoth, Pilot])
def test_only_files_of_a_checkout_are_in_its_identity(contract: type[Mammoth], checkout: Path) -> None:
    algorithm = SimpleNamespace(modules=[SimpleNamespace(url=str(checkout / "models" / "a.py"))])
    before = contract().algorithm_identity(algorithm)
    clutter(checkout)
    assert contract().algorithm_identity(algorithm) == before
    (checkout / "utils" / "a.py").write_text("# another\n")
    assert contract().algorithm_identity(algorithm) != before


def test_files_are_listed_by_patterns_and_links_to_files_count(checkout: Path) -> None:
    clutter(checkout)
    (checkout / "models" / "b.py").symlink_to(checkout / "utils" / "a.py")
    listed = [path.relative_to(checkout).as_posix() for path in regular_files(checkout, "models/**/*.py", "exps/*")]
    assert sorted(listed) == ["exps/a.py", "models/a.py", "models/b.py"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import helper\n\n\nclass A:\n    x = helper.y\n")
    (tmp_path / "helper.py").write_text("y = 1\n")
    read = Path.read_bytes

    def refused(path: Path) -> bytes:
        if path.name == "helper.py":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refused)
    for attempt in (lambda: read_source(tmp_path / "helper.py"), lambda: source_of(str(plugin), "A")):
        assert errors_of(attempt) == [("unreadable-file", "")]


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_a_module_that_is_no_file_is_no_source(kind: str, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import helper\n\n\nclass A:\n    x = helper\n")
    (tmp_path / "helper.py").mkdir() if kind == "folder" else (tmp_path / "helper.py").symlink_to("nowhere.py")
    assert list(source_of(str(plugin), "A")) == ["plugin.py"]
