"""Packages that are imported when they are asked for."""

import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

from ianvs.testalgorithms.adapters.imported_later import ImportedLater

PLOTS = "import pathlib\nclass Figure:\n    sides = 4\ndef drawn(times):\n    return ['line'] * times\n"
LIBRARY = """
import plots9.figures as figures
from plots9 import curves
from plots9.figures import Figure, drawn
from absent9 import never

def is_figure(one: "Figure | None"):
    return isinstance(one, (int, Figure))
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "plots9").mkdir()
    (tmp_path / "plots9" / "__init__.py").write_text("")
    (tmp_path / "plots9" / "curves.py").write_text("bend = 3\n")
    (tmp_path / "plots9" / "figures.py").write_text(PLOTS)
    (tmp_path / "library9.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("plots9", "library9", "absent9")]:
        del sys.modules[name]


def test_what_is_asked_for_is_the_real_one(library: Path) -> None:
    with ImportedLater("plots9", "absent9"):
        found = importlib.import_module("library9")
    assert not any(name.startswith("plots9") for name in sys.modules)

    assert found.drawn(2) == ["line", "line"]
    assert found.Figure.sides == 4
    assert found.curves.bend == 3
    assert found.figures.Figure.sides == 4
    kind = types.new_class("Own", (found.Figure,))
    assert kind.__mro__[1] is importlib.import_module("plots9.figures").Figure
    assert found.is_figure(kind()) and not found.is_figure("text")


def test_what_is_not_installed_is_told_when_it_is_asked_for(library: Path) -> None:
    with ImportedLater("plots9", "absent9"):
        found = importlib.import_module("library9")
    with pytest.raises(ModuleNotFoundError, match="absent9"):
        found.never()


def test_what_is_asked_for_while_a_library_is_imported_is_there(library: Path) -> None:
    (library / "library9.py").write_text(LIBRARY + "\nclass Own(Figure):\n    lines = drawn(1)\n")
    with ImportedLater("plots9", "absent9"):
        importlib.import_module("library9")
        assert importlib.import_module("plots9.figures").Figure.__module__ == "plots9.figures"
    assert sys.modules["library9"].Own.lines == ["line"]


def test_what_was_imported_before_stays(library: Path) -> None:
    before = importlib.import_module("plots9.figures")
    with ImportedLater("plots9", "absent9"):
        found = importlib.import_module("library9")
    assert found.Figure is before.Figure and sys.modules["plots9.figures"] is before
