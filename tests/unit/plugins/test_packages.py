"""Plugins in packages with relative imports, as papers' code is laid out: loaded, kept and known by all their files."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ianvs.base.errors import PluginError
from ianvs.plugins.authors_files import imports_from
from ianvs.plugins.loader import load, load_once
from ianvs.plugins.source import authors_sources, source_of

METHOD = "from .base import Base\n\n\nclass Method(Base):\n    pass\n"
BASE = "class Base:\n    answer = 'base'\n"
LAYOUTS: Mapping[str, tuple[str, Mapping[str, str], object, set[str]]] = {
    "a package": (
        "approach/method.py",
        {
            "approach/__init__.py": "LOADED = True\n",
            "approach/method.py": METHOD,
            "approach/base.py": BASE,
            "approach/unused.py": "raise SystemExit\n",
        },
        "base",
        {"method.py", "base.py", "__init__.py"},
    ),
    "a folder without __init__.py": (
        "2024-code/method.py",
        {"2024-code/method.py": METHOD, "2024-code/base.py": BASE},
        "base",
        {"method.py", "base.py"},
    ),
    "a package whose __init__ imports the plugin": (
        "approach/method.py",
        {
            "approach/__init__.py": "from .method import Method\nREGISTRY = [Method]\n",
            "approach/method.py": f"{METHOD}    def registered(self):\n        from . import REGISTRY\n"
            "        return REGISTRY == [type(self)]\n\n    @property\n    def answer(self):\n"
            "        return self.registered()\n",
            "approach/base.py": "class Base:\n    pass\n",
        },
        True,
        {"method.py", "base.py", "__init__.py"},
    ),
    "modules beside the package, and above": (
        "src/approach/method.py",
        {
            "src/approach/__init__.py": "",
            "src/approach/method.py": "from .base import Base\nfrom datasets.exemplars import NAME\n\n\n"
            "class Method(Base):\n    answer = NAME\n",
            "src/approach/base.py": "from argparse import ArgumentParser\nBase = object\n",
            "src/datasets/__init__.py": "",
            "src/datasets/exemplars.py": "NAME = 'theirs'\n",
        },
        "theirs",
        {"method.py", "base.py", "__init__.py", "../datasets/__init__.py", "../datasets/exemplars.py"},
    ),
    "a package in a package without __init__.py": (
        "work/methods/one/method.py",
        {
            "work/methods/one/method.py": "from ..base import Base\n\n\nclass Method(Base):\n    pass\n",
            "work/methods/base.py": "from ..tools import ANSWER\n\n\nclass Base:\n    answer = ANSWER\n",
            "work/tools.py": "ANSWER = 'top'\n",
        },
        "top",
        {"methods/one/method.py", "methods/base.py", "tools.py"},
    ),
    "the package by its own name": (
        "models/method.py",
        {
            "models/__init__.py": "",
            "models/method.py": "from models.utils.base import Base\n\n\nclass Method(Base):\n    pass\n",
            "models/utils/__init__.py": "",
            "models/utils/base.py": BASE,
        },
        "base",
        {"method.py", "__init__.py", "utils/__init__.py", "utils/base.py"},
    ),
}


def written(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def answer(url: Path) -> object:
    with load(str(url), "Method").active() as build:
        return build().answer


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_runs_from_its_files_and_from_kept_bytes(layout: str, tmp_path: Path) -> None:
    entry, files, expected, named = LAYOUTS[layout]
    written(tmp_path, files)
    before = set(sys.modules)
    assert answer(tmp_path / entry) == expected
    assert {name for name in set(sys.modules) - before if not name.startswith("ianvs_plugin_")} <= {"argparse"}
    assert set(source_of(str(tmp_path / entry), "Method")) == named
    planned = {path: path.read_bytes() for path in authors_sources(str(tmp_path / entry), "Method")}
    assert len(planned) == len(named)
    for path in planned:
        path.unlink()
    with imports_from(planned):
        assert answer(tmp_path / entry) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_change_of_any_of_its_files_counts_and_a_move_does_not(layout: str, tmp_path: Path) -> None:
    entry, files, _, _ = LAYOUTS[layout]
    for place in ("here", "elsewhere"):
        written(tmp_path / place, files)
    url = tmp_path / "here" / entry
    before = source_of(str(url), "Method")
    assert source_of(str(tmp_path / "elsewhere" / entry), "Method") == before
    for path in authors_sources(str(url), "Method"):
        text = path.read_text()
        path.write_text(f"{text}\nMORE = 1\n")
        after = source_of(str(url), "Method")
        assert sum(before[name] != after[name] for name in before) == 1
        path.write_text(text)


def test_two_methods_of_a_package_share_nothing_and_an_edited_file_is_read_again(tmp_path: Path) -> None:
    written(tmp_path, LAYOUTS["a package"][1])
    written(tmp_path, {"approach/other.py": METHOD.replace("Method", "Other")})
    first = load(str(tmp_path / "approach/method.py"), "Method").target
    other = load(str(tmp_path / "approach/other.py"), "Other").target
    assert first.__mro__[1] is not other.__mro__[1]
    written(tmp_path, {"approach/base.py": "class Base:\n    answer = 'edited'\n"})
    assert answer(tmp_path / "approach/method.py") == "edited"
    assert load_once(str(tmp_path / "approach/other.py"), "Other").target.answer == "edited"
    assert first.answer == "base"


def test_its_objects_can_be_pickled_and_what_it_imports_late_is_its_own(tmp_path: Path) -> None:
    files = {
        "approach/method.py": "from . import base\n\n\nclass Method:\n    def late(self):\n"
        "        from .later import ANSWER\n        return ANSWER\n",
        "approach/base.py": "",
        "approach/later.py": "ANSWER = 'later'\n",
    }
    written(tmp_path, files)
    loaded = load(str(tmp_path / "approach/method.py"), "Method")
    with loaded.active() as build:
        again = pickle.loads(pickle.dumps(build()))
        assert (type(again), again.late()) == (build, "later")
    assert {"method.py", "base.py", "later.py"} == set(source_of(str(tmp_path / "approach/method.py"), "Method"))


def test_a_missing_module_of_the_authors_own_package_is_a_file_and_no_package_to_install(tmp_path: Path) -> None:
    (tmp_path / "method.py").write_text(METHOD)
    with pytest.raises(PluginError) as caught:
        load(str(tmp_path / "method.py"), "Method")
    assert "base.py" in str(caught.value)
    assert "pip install" not in str(caught.value)
