"""Entry points of methods, and the guide that helps to choose among them."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["ianvs.algorithms"]


def test_methods_that_the_guide_names_are_there():
    text = (ROOT / "docs" / "methods.md").read_text()
    section = text.partition("## Which method")[2].partition("\n## ")[0].partition("\n\n`Replay`")[0]
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ") and "`" in line]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 40
    assert named <= POINTS.keys()


def test_an_entry_point_names_a_class_that_is_there():
    for name, target in POINTS.items():
        module, cls = target.split(":")
        file = ROOT / Path(*module.split(".")[1:]).with_suffix(".py")
        assert name == cls
        assert re.search(rf"^class {cls}\b|import .*\b{cls}\b|^{cls} =", file.read_text(), re.M), target
