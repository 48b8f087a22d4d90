"""The page of reproductions has every report and says how its numbers were made."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PLACES = re.findall(r"^\{\{ (.*) \}\}$", (DOCS / "reproductions.template.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def page() -> str:
    return str(runpy.run_path(str(DOCS / "make_reproductions.py"))["page"]())


def test_every_report_of_a_reproduction_is_in_it() -> None:
    jobs = [path.read_text(encoding="utf-8") for path in (DOCS.parent / "configs" / "reproductions").glob("*/*.yaml")]
    names = re.findall(r"^benchmarkingjob:\n  name: (\w+)$", "\n".join(jobs), re.MULTILINE)
    reported = {name for name in names if (DOCS.parent / "reports" / name).is_dir()}
    assert len(reported) >= 8
    assert reported <= {name for words in PLACES for name in re.findall(r"\w+", words)}


def test_every_table_has_a_line_that_says_what_was_run_by_whom_when_where_and_with_what(page: str) -> None:
    run = r"^- Run by the ianvs authors, [\d-]{10}, at commit \w{12}.*: `ianvs -f .+`\. .* cores, .*; Python .*, torch "
    expected = sum(words.startswith(("table ", "scores ")) for words in PLACES)
    assert len(re.findall(run, page, re.MULTILINE)) == expected
    assert "{{" not in page
