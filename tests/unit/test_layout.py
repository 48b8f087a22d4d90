"""How the code is laid out."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import ianvs
from tests.edits import edited

ROOT = Path(__file__).parents[2]


def test_no_name_of_a_module_occurs_twice() -> None:
    found = [path for top in ("core/ianvs", "testenv", "testalgorithms") for path in (ROOT / top).rglob("*.py")]
    # A link is not followed twice; every method has a basemodel.py, as in Ianvs.
    own = {path.resolve() for path in found}
    names = Counter(path.name for path in own if path.name not in ("__init__.py", "basemodel.py"))
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.parametrize(
    ("walk", "count"), [("From the files to a leaderboard cell", 12), ("From a line of an index", 6)]
)
def test_the_forms_of_a_case_and_of_a_sample_are_those_that_the_architecture_lists(walk: str, count: int) -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    [section] = [part for part in text.split("\n## ") if part.startswith(walk)]
    rows = [line for line in section.splitlines() if line.startswith("| ") and line[2:4].strip().isdigit()]
    shapes = [name for row in rows for name in edited(row.split("|")[2], "`", "", " ", "").split(",")]
    assert len(rows) == count
    _require_classes(shapes)


def test_a_prediction_takes_the_six_forms_to_a_cell_that_the_architecture_lists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition("| form | what it is | made in |")[2].partition("\n\n")[0]
    forms = re.findall(r"^\| `(\w+)`", table, re.M)
    assert len(forms) == 6
    _require_classes(forms)


def _require_classes(names: list[str]) -> None:
    sources = "\n".join(path.read_text() for path in Path(ianvs.__file__).parent.rglob("*.py"))
    assert [name for name in names if not re.search(rf"^class {name}\b", sources, re.M)] == []
