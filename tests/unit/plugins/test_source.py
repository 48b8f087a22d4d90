"""Fingerprints of source: what must and what must not change them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ianvs.plugins.local_imports import parsed
from ianvs.plugins.source import local_files, source_of


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("import deeper\nprint(deeper)\n")
    (tmp_path / "deeper.py").write_text("X = 1\n")
    (tmp_path / "unrelated.py").write_text("X = 1\n")
    path = tmp_path / "plugin.py"
    path.write_text("import numpy\nimport json\n\ndef late():\n    import helper\n    return helper\n")
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
    path = Path(__file__).parents[3] / "testalgorithms" / "ewc" / "basemodel.py"
    found = source_of(str(path), "EWC")
    assert {"basemodel.py", "ianvs/authoring/torch_learner.py", "ianvs/authoring/fisher.py"} <= set(found)
    assert not any(name.startswith("ianvs/session") for name in found)


def imported(plugin: Path) -> set[str]:
    return {name.split(".")[0] for file in local_files(str(plugin), "Model") for name in parsed(file).imports}


def test_it_is_known_which_packages_a_plugin_will_import(plugin: Path) -> None:
    assert {"numpy", "json", "helper", "deeper"} <= imported(plugin)


def test_a_package_that_pythonpath_finds_is_not_the_plugins_own(
    plugin: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path_factory.mktemp("target")
    (target / "somelib").mkdir()
    (target / "somelib" / "__init__.py").write_text("import torch\nfrom somelib import inner\n")
    (target / "somelib" / "inner.py").write_text("")
    monkeypatch.syspath_prepend(str(target))
    before = source_of(str(plugin), "Model")
    plugin.write_text(plugin.read_text() + "import somelib\n")
    assert set(source_of(str(plugin), "Model")) == set(before)
    names = imported(plugin)
    assert "somelib" in names
    assert "torch" not in names


def test_modules_of_the_jobs_folder_are_local(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = tmp_path_factory.mktemp("job")
    (job / "methods").mkdir()
    (job / "shared.py").write_text("X = 1\n")
    (job / "methods" / "plugin.py").write_text("import shared\n")
    monkeypatch.syspath_prepend(str(job))
    url = str(job / "methods" / "plugin.py")
    assert set(source_of(url, "Model")) == {"plugin.py"}
    assert set(source_of(url, "Model", job=job)) == {"plugin.py", "../shared.py"}


def test_a_module_on_the_path_is_local_as_far_as_its_package_reaches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "ownpack/__init__.py": "",
        "ownpack/common.py": "",
        "ownpack/methods/__init__.py": "",
        "ownpack/methods/plugin.py": "import ownpack.common\nimport beside\n",
        "beside.py": "",
        "alone.py": "import beside\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {"plugin.py", "../common.py"} <= set(source_of("ownpack.methods.plugin:Model", "Model"))
    assert "beside.py" not in source_of("ownpack.methods.plugin", "Model")
    assert set(source_of("alone", "Model")) == {"alone.py"}
