"""docs/methods.md lists what ships."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "methods.md").read_text()
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["ianvs.algorithms"]


def test_every_folder_with_an_entry_point_is_in_the_table():
    modules = {target.split(":")[0].removeprefix("ianvs.testalgorithms.").split(".")[0] for target in POINTS.values()}
    listed = set(re.findall(r"\]\(\.\./testalgorithms/(\w+)/", PAGE))
    assert modules == listed


def test_an_entry_point_names_a_class_that_is_there():
    for name, target in POINTS.items():
        module, cls = target.split(":")
        file = ROOT / Path(*module.split(".")[1:]).with_suffix(".py")
        assert name == cls
        assert re.search(rf"^class {cls}\b|import .*\b{cls}\b|^{cls} =", file.read_text(), re.M), target
