"""The generated pages of the reference: every command, key, metric and method, each with its meaning."""

from __future__ import annotations

import re
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ianvs.cli.command_line import GROUPS
from ianvs.exam.metrics.table import describe

MAKER = runpy.run_path(str(Path(__file__).parents[3] / "docs" / "make_reference.py"))
MEANINGS: Mapping[str, Mapping[str, str]] = MAKER["MEANINGS"]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(MAKER["pages"]())


def test_every_key_of_the_schema_has_a_meaning_and_no_other(pages: dict[str, str]) -> None:
    found: dict[str, set[str]] = {}
    for part in re.split(r"^###? ", pages["yaml.md"], flags=re.MULTILINE)[1:]:
        title = part.splitlines()[0].removesuffix(".yaml")
        rows = re.findall(r"^\| `(\w+)` \|.*\| *(.*?) *\|$", part, re.MULTILINE)
        assert all(meaning for _, meaning in rows), title
        found[title] = {key for key, _ in rows}
    assert found == {section: set(keys) for section, keys in MEANINGS.items()}


def test_every_command_and_metric_is_there(pages: dict[str, str]) -> None:
    assert set(" ".join(GROUPS).split()) <= set(re.findall(r"^## ianvs (\w+)$", pages["cli.md"], re.MULTILINE))
    assert all(f"`{row['name']}`" in pages["metric_list.md"] for row in describe())


def test_a_method_is_in_the_catalogue_with_its_file(pages: dict[str, Any]) -> None:
    assert re.search(r"^\| `EWC` \| .*Kirkpatrick.*testalgorithms/ewc/basemodel.py\) \|$", pages["catalogue.md"], re.M)
