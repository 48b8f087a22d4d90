"""How authors' files are imported: from kept bytes, compiled anew, and as if they came from where they lie."""

from __future__ import annotations

import importlib.util
import inspect
import marshal
import struct
import sys
import traceback
from pathlib import Path

import pytest

from ianvs.kubeedge.loading import import_file
from ianvs.plugins.authors_files import imports_from
from ianvs.plugins.loader import load

PLUGIN = """
import sys
from pathlib import Path
import helper
from parts.inner import INNER
from space.deep import DEEP

class Model:
    where = Path(__file__)
    known = (helper.NAME, INNER, DEEP)
    data = (Path(__file__).parent / "data.txt").read_text()

    def late(self):
        from parts import lazy
        return lazy.NAME

    def fails(self):
        raise ValueError("here")
"""
FILES = {
    "plugin.py": PLUGIN,
    "helper.py": "NAME = 'helper'\n",
    "parts/__init__.py": "",
    "parts/inner.py": "from .other import OTHER\nfrom . import other\nINNER = OTHER + other.OTHER\n",
    "parts/other.py": "OTHER = 'o'\n",
    "parts/lazy.py": "NAME = 'lazy'\n",
    "space/deep.py": "DEEP = 'deep'\n",
}


@pytest.fixture
def files(tmp_path: Path) -> dict[Path, bytes]:
    """The bytes of a plugin's files, which lie in `tmp_path` as well."""
    (tmp_path / "data.txt").write_text("beside")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return {(tmp_path / name).resolve(): text.encode() for name, text in FILES.items()}


def forged(path: Path, source: str) -> None:
    """Byte code beside the file, as Python would have written it, had `source` been in there."""
    stat, target = path.stat(), Path(importlib.util.cache_from_source(str(path)))
    target.parent.mkdir(exist_ok=True)
    head = importlib.util.MAGIC_NUMBER + struct.pack("<III", 0, int(stat.st_mtime), stat.st_size)
    target.write_bytes(head + marshal.dumps(compile(source, str(path), "exec")))


@pytest.mark.parametrize("become", ["as it was", "rewritten", "gone", "hidden by packages"])
def test_kept_bytes_run_whatever_has_become_of_the_files(tmp_path: Path, files: dict[Path, bytes], become: str) -> None:
    for path in files:
        if become == "rewritten":
            path.write_text("raise SystemExit\n")
        elif become == "gone":
            path.unlink()
        elif become == "hidden by packages" and path.stem != "__init__":
            path.with_suffix("").mkdir(exist_ok=True)
            (path.with_suffix("") / "__init__.py").write_text("raise SystemExit\n")
    with imports_from(files):
        loaded = load(str(tmp_path / "plugin.py"), "Model")
        with loaded.active() as build:
            model = build()
            assert model.known == ("helper", "oo", "deep")
            assert (model.late(), model.data) == ("lazy", "beside")
            assert model.where == tmp_path / "plugin.py"
            assert "def fails(self)" in inspect.getsource(build)
            with pytest.raises(ValueError, match="here") as raised:
                model.fails()
            frames = traceback.extract_tb(raised.tb)
            assert frames[-1].filename == str((tmp_path / "plugin.py").resolve())
            assert frames[-1].line == 'raise ValueError("here")'
    assert not {"helper", "parts", "space"} & set(sys.modules)


def test_without_kept_bytes_files_are_read_and_byte_code_is_not(tmp_path: Path, files: dict[Path, bytes]) -> None:
    for path in files:
        forged(path, "raise SystemExit")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.pyc")}
    (tmp_path / "helper.py").write_text("NAME = 'changed'\n")
    with load(str(tmp_path / "plugin.py"), "Model").active() as build:
        assert build().known == ("changed", "oo", "deep")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.pyc")} == before


def test_a_module_that_no_statement_names_is_compiled_anew_too(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_text(
        "import importlib\n\nclass Model:\n    made = importlib.import_module('by' + 'name').X\n"
    )
    (tmp_path / "byname.py").write_text("X = 1\n")
    forged(tmp_path / "byname.py", "X = 2")
    assert load(str(tmp_path / "plugin.py"), "Model").target.made == 1


def test_what_was_kept_holds_no_longer_than_it_should(tmp_path: Path, files: dict[Path, bytes]) -> None:
    with imports_from(files):
        load(str(tmp_path / "plugin.py"), "Model")
    (tmp_path / "plugin.py").write_text("class Model:\n    answer = 2\n")
    model = load(str(tmp_path / "plugin.py"), "Model").target
    assert model.answer == 2
    assert inspect.getsource(model) == "class Model:\n    answer = 2\n"


def test_a_module_of_sys_path_that_comes_first_is_still_first(
    tmp_path: Path, files: dict[Path, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "only_by_path.py").write_text("WHO = 'first'\n")
    (tmp_path / "only_by_path.py").write_text("WHO = 'second'\n")
    load(str(tmp_path / "plugin.py"), "Model")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path), *sys.path])
    assert importlib.import_module("only_by_path").WHO == "first"
    del sys.modules["only_by_path"]


def test_a_plugin_of_the_other_contract_is_imported_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "only_kubeedge.py"
    file.write_text("WHO = 'planned'\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    planned = {file.resolve(): file.read_bytes()}
    file.write_text("WHO = 'another'\n")
    forged(file, "WHO = 'forged'")
    with imports_from(planned):
        assert import_file(str(file)).WHO == "planned"
    monkeypatch.delitem(sys.modules, "only_kubeedge")
