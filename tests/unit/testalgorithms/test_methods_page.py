"""docs/methods.md lists what ships."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "methods.md").read_text()
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["ianvs.algorithms"]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if "basemodel.py" in line]


def test_every_folder_with_an_entry_point_is_in_the_table():
    modules = {target.split(":")[0].removeprefix("ianvs.testalgorithms.").split(".")[0] for target in POINTS.values()}
    listed = set(re.findall(r"\]\(\.\./testalgorithms/(\w+)/", PAGE))
    assert modules == listed


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_tells_the_file_its_lines_and_its_papers(row):
    _, _, arxiv, file, lines, *_ = row
    source = (ROOT / "docs" / re.search(r"\((.+)\)", file)[1]).resolve().read_text()
    assert int(lines) == len(source.splitlines())
    for told in re.findall(r"arXiv (\d{4}\.\d{5})", source.split("class ", 1)[1].split('"""')[1]):
        assert told in arxiv


@pytest.mark.parametrize("name, target", POINTS.items())
def test_an_entry_point_names_a_class_that_is_there(name, target):
    module, cls = target.split(":")
    file = ROOT / Path(*module.split(".")[1:]).with_suffix(".py")
    assert name == cls
    assert re.search(rf"^class {cls}\b|import .*\b{cls}\b|^{cls} =", file.read_text(), re.M)
