"""Fingerprints of source: what must and what must not change them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.plugins.source import imported_names, source_of


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("import deeper\n")
    (tmp_path / "deeper.py").write_text("X = 1\n")
    (tmp_path / "unrelated.py").write_text("X = 1\n")
    path = tmp_path / "plugin.py"
    path.write_text("import numpy\nimport json\n\ndef late():\n    from helper import y\n")
    return path


def test_local_imports_count_and_installed_ones_do_not(plugin: Path) -> None:
    assert set(source_of(str(plugin), "Model")) == {"plugin.py", "helper.py", "deeper.py"}


@pytest.mark.parametrize("name", ["plugin.py", "helper.py", "deeper.py"])
def test_a_change_anywhere_below_changes_the_fingerprint(plugin: Path, name: str) -> None:
    before = source_of(str(plugin), "Model")
    path = plugin.parent / name
    path.write_text(path.read_text() + "Y = 2\n")
    after = source_of(str(plugin), "Model")
    assert {key for key in before if before[key] != after[key]} == {name}


def test_a_moved_folder_and_other_line_ends_keep_the_fingerprint(plugin: Path, tmp_path: Path) -> None:
    before = source_of(str(plugin), "Model")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("plugin.py", "helper.py", "deeper.py"):
        (elsewhere / name).write_bytes((plugin.parent / name).read_bytes().replace(b"\n", b"\r\n"))
    assert source_of(str(elsewhere / "plugin.py"), "Model") == before


def test_imports_that_go_in_circles_end(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import b\n")
    (tmp_path / "b.py").write_text("import a\n")
    assert set(source_of(str(tmp_path / "a.py"), "x")) == {"a.py", "b.py"}


def test_relative_imports_are_followed(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "near.py").write_text("X = 1\n")
    (tmp_path / "plugin.py").write_text("from .near import X\nfrom . import far\n")
    (tmp_path / "far.py").write_text("")
    assert {"plugin.py", "near.py", "far.py"} <= set(source_of(str(tmp_path / "plugin.py"), "x"))


def test_a_method_on_our_base_class_depends_on_the_base_class() -> None:
    path = Path(__file__).parents[2] / "testalgorithms" / "ewc" / "basemodel.py"
    found = source_of(str(path), "EWC")
    assert {"basemodel.py", "ianvs/authoring/torch_learner.py", "ianvs/authoring/fisher.py"} <= set(found)
    assert not any(name.startswith("ianvs/session") for name in found)


def test_it_is_known_which_packages_a_plugin_will_import(plugin: Path) -> None:
    assert {"numpy", "json", "helper", "deeper"} <= imported_names(str(plugin), "Model")
