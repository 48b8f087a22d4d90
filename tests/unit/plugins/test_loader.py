"""Loading authors' code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ianvs.base.errors import PluginError
from ianvs.plugins.loader import load, load_object
from ianvs.plugins.missing_modules import how_to_install
from tests.errors import errors_of


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_two_files_of_the_same_basename_never_meet(tmp_path: Path) -> None:
    one = write(tmp_path / "one" / "basemodel.py", "class Model:\n    answer = 1\n")
    two = write(tmp_path / "two" / "basemodel.py", "class Model:\n    answer = 2\n")
    assert (load_object(one, "Model").answer, load_object(two, "Model").answer) == (1, 2)


def test_helper_modules_of_the_same_name_never_meet(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / str(number) / "helper.py", f"ANSWER = {number}\n")
        write(
            tmp_path / str(number) / "plugin.py",
            "import helper\n\nclass Model:\n    def early(self):\n        return helper.ANSWER\n"
            "    def late(self):\n        import helper\n        return helper.ANSWER\n",
        )
    loaded = [load(str(tmp_path / str(number) / "plugin.py"), "Model") for number in (1, 2)]
    for number, plugin in enumerate(loaded, 1):
        with plugin.active() as build:
            assert (build().early(), build().late()) == (number, number)
    assert "helper" not in sys.modules


def test_an_alias_given_by_the_decorator_is_honoured(tmp_path: Path) -> None:
    url = write(
        tmp_path / "plugin.py",
        "from sedna.common.class_factory import ClassFactory, ClassType\n\n"
        '@ClassFactory.register(ClassType.GENERAL, alias="BaseModel")\nclass Whatever:\n    pass\n',
    )
    assert load_object(url, "BaseModel").__name__ == "Whatever"
    assert "sedna" not in sys.modules


def test_a_module_is_found_by_its_dotted_name() -> None:
    assert load_object("ianvs.base.seeding", "stream_seed")(0, 0, "x") >= 0
    assert load_object("ianvs.base.seeding:generator", "whatever").__name__ == "generator"


def test_a_missing_class_names_the_closest_and_what_is_there(tmp_path: Path) -> None:
    url = write(tmp_path / "plugin.py", "class NearestMean:\n    pass\n")
    assert errors_of(load, url, "NearestMeen") == [("unloadable-plugin", "")]


def test_a_syntax_error_is_shown_with_its_line(tmp_path: Path) -> None:
    url = write(tmp_path / "plugin.py", "x = 1\nclass Model\n    pass\n")
    assert errors_of(load, url, "Model") == [("unloadable-plugin", "")]


def test_an_error_at_import_is_shown_with_its_line(tmp_path: Path) -> None:
    url = write(tmp_path / "plugin.py", "x = 1\n\nimport not_there_at_all\n")
    assert errors_of(load, url, "Model") == [("unloadable-plugin", "")]


def test_an_unknown_built_in_names_the_closest() -> None:
    assert errors_of(load, None, "EWCC") == [("unloadable-plugin", "")]


@pytest.mark.parametrize("module", ["core.py", "core/__init__.py", "utils.py", "models/__init__.py", "datasets.py"])
def test_a_plugins_own_modules_are_its_own_whatever_else_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    name = module.removesuffix(".py").removesuffix("/__init__")
    for known in [one for one in sys.modules if one.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, known)  # what other tests have imported comes back after this one
    write(tmp_path / "elsewhere" / module, "FACTOR = 0\n")
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    before = __import__(name)
    write(tmp_path / "mine" / module, "FACTOR = 7\n")
    url = write(
        tmp_path / "mine" / "plugin.py",
        f"import {name}\n\nclass Model:\n    def answer(self):\n        import {name}\n        return {name}.FACTOR\n",
    )
    loaded = load(url, "Model")
    with loaded.active() as build:
        assert build().answer() == 7
    assert sys.modules.pop(name) is before


def test_a_package_whose_name_begins_like_those_of_workers_is_one_to_install() -> None:
    assert "the package that has it" in how_to_install("author_tools")
    assert "pip install" not in how_to_install("author_folder.parts", "/an/environment/bin/python")


def test_a_module_that_an_installed_package_lacks_is_not_to_be_installed() -> None:
    text = how_to_install("numpy.not_a_module")
    assert text == "The package numpy has no such module: check the spelling, and its version"


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("cv2", "pip install opencv-python"),
        ("numpy", "pip install numpy"),
        ("avalanche", "pip install avalanche-lib"),
        ("utils", "has to lie beside the plugin's file"),
        ("some_name", "whose name may be another"),
    ],
)
def test_pip_is_told_a_name_only_where_it_is_known(module: str, expected: str) -> None:
    text = how_to_install(module)
    assert expected in text
    assert ("pip install" in text) == ("pip install" in expected)


def test_a_url_with_dots_of_an_own_file_is_told_its_path() -> None:
    with pytest.raises(PluginError, match=r"\./pk_of_mine/plugin\.py"):
        load("pk_of_mine.plugin", "Model")
