"""Names that a plugin imports from files beside it and that are not there."""

from __future__ import annotations

from ianvs.kubeedge.missing_names import missing_names


def test_a_name_that_a_package_beside_the_plugin_does_not_define(tmp_path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text("import os\nfrom models import Small, Large, huge\nfrom models.small import weights, bias\n")
    package = tmp_path / "models"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from .small import Small\ntry:\n    import x as Other\nexcept ImportError: ...\n"
    )
    (package / "small.py").write_text("class Small: ...\nweights = [1]\nfrom .huge import nothing\n")
    (package / "huge.py").write_text("")
    names = {(missing.name, missing.source.name, missing.line) for missing in missing_names([plugin], [])}
    assert names == {("Large", "__init__.py", 2), ("bias", "small.py", 3), ("nothing", "huge.py", 3)}


def test_files_whose_names_are_not_settled_are_left_out(tmp_path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(
        "from star import a\nfrom lazily import b\nfrom made import c\nfrom numpy import no_such\nfrom plain import *\n"
    )
    (tmp_path / "plain.py").write_text("d = 1\n")
    (tmp_path / "star.py").write_text("from numpy import *\n")
    (tmp_path / "lazily.py").write_text("def __getattr__(name): ...\n")
    (tmp_path / "made.py").write_text("globals()['c'] = 1\n")
    assert not [*missing_names([plugin], [])]


def test_what_only_a_function_imports_is_no_error(tmp_path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text("def later():\n    from sibling import nothing\n")
    (tmp_path / "sibling.py").write_text("")
    assert not [*missing_names([plugin], [])]
