"""What slips.py takes for a slip, where it puts it, and which tests it runs for it."""

from __future__ import annotations

import pytest

from tests.slip_places import find_slips, line_of, put_slip
from tests.slips import Coverage, Outcome, choose_slips, select_tests, write_table

SOURCE = '''
from typing import TYPE_CHECKING, Literal

__all__ = ["shorten"]

if TYPE_CHECKING:
    LIMIT = 3


def shorten(rows: Literal[1, 2], most=7):
    """Keep 5 rows."""
    if rows is not None and len(rows) < most:
        print("fewer than 5", 5 < 6)
        raise ValueError(f"{len(rows) - 1}", 4 < 5)
    return sorted(rows, key=len, reverse=True)[: -1 + most]
'''


def changes(source: str) -> set[tuple[str, str]]:
    return {(slip.kind, slip.after) for slip in find_slips(source, "a.py")}


def test_every_kind_of_slip_is_one_change_of_one_line():
    assert changes(SOURCE) == {
        ("comparison", "if rows is None and len(rows) < most:"),
        ("comparison", "if rows is not None and len(rows) <= most:"),
        ("argument", "return sorted(rows, reverse=True)[: -1 + most]"),
        ("argument", "return sorted(rows, key=len)[: -1 + most]"),
        ("off-by-one", "return sorted(rows, key=len, reverse=True)[: -2 + most]"),
        ("sign", "return sorted(rows, key=len, reverse=True)[: 1 + most]"),
        ("sign", "return sorted(rows, key=len, reverse=True)[: -1 - most]"),
    }


def test_columns_are_those_of_bytes():
    assert changes("def f(x):\n    return {'größe': x}['größe'] > x\n") == {
        ("comparison", "return {'größe': x}['größe'] >= x")
    }


@pytest.mark.parametrize("before", ["", "\n# a line more\n\ndef other():\n    return 1 < 2\n"])
def test_a_slip_is_put_on_its_line_even_if_that_has_moved(before: str):
    source = "def f(a):\n    if a:\n        return a - 1\n    return a - 1\n"
    second = next(slip for slip in find_slips(source, "a.py") if slip.line == 4 and slip.kind == "sign")
    changed = put_slip(before + source, second)
    assert changed == before + source.replace("    return a - 1\n", "    return a + 1\n").replace(
        "        return a + 1\n", "        return a - 1\n"
    )


def test_a_line_that_is_gone_gets_no_slip():
    slip = find_slips("def f(a):\n    return a - 1\n", "a.py")[0]
    assert put_slip("def f(a):\n    return a - 2\n", slip) is None
    assert put_slip("def g(a):\n    return a - 1\n", slip) is None
    assert line_of("def f(a):\n    return a - 1\n", slip) == 2


COVERAGE = Coverage(
    tests={"a.py": {2: frozenset({"broad", "narrow", "long"})}},
    sizes={"broad": 900, "narrow": 3, "long": 10},
    seconds={"broad": 1.0, "narrow": 0.5, "long": 60.0},
)


def test_tests_that_cover_least_come_first_up_to_the_limit():
    assert select_tests(COVERAGE, "a.py", 2, (), 100) == (["narrow", "long", "broad"], 0)
    assert select_tests(COVERAGE, "a.py", 2, (), 10) == (["narrow"], 2)
    assert select_tests(COVERAGE, "a.py", 2, ("l",), 10) == (["long"], 0)
    assert select_tests(COVERAGE, "a.py", 3, (), 10) == ([], 0)


def test_the_choice_depends_on_the_seed_alone_and_on_covered_lines(tmp_path):
    functions = "".join(f"def f{number}(a):\n    return a < {number}\n\n\n" for number in range(20))
    (tmp_path / "a.py").write_text(functions)
    covered = {line: frozenset({"narrow"}) for line in range(2, 41, 4)}
    coverage = Coverage({"a.py": covered}, COVERAGE.sizes, COVERAGE.seconds)
    first = choose_slips(coverage, tmp_path, 1, 4)
    assert first == choose_slips(coverage, tmp_path, 1, 4)
    assert first != choose_slips(coverage, tmp_path, 2, 4)
    assert {slip.line for slip in first} <= covered.keys()
    assert len({slip.function for slip in first}) == 4
    assert {slip.kind for slip in first} == {"comparison", "off-by-one"}


def test_the_table_counts_what_was_noticed(tmp_path):
    slip = find_slips("def f(a):\n    return a | 1 < 2\n", "a.py")[0]
    outcomes = [
        Outcome(slip, True, "tests/test_a.py::test_b", 3, 0, 1.0),
        Outcome(slip, False, "", 3, 2, 1.0),
        Outcome(slip, None, "its line is gone", 0, 0, 0.0),
    ]
    write_table(outcomes, tmp_path / "table.md", "seed 1")
    text = (tmp_path / "table.md").read_text()
    assert text.startswith("1 of 2 slips")
    assert "1 of those not noticed" in text
    assert text.count("a \\| 1") == 6
