"""A tree over the classes, as a testenv or a file of its own gives it, and what is wrong with one."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.unit.config.conftest import Files

TREE = (("bird", "animal"), ("car", "thing"), ("cat", "animal"), ("animal", "all"), ("thing", "all"))
LINES = "\n".join(f"{child}: {parent}" for child, parent in TREE)
NESTED = "all:\n  - animal: [bird, cat]\n  - thing:\n      - car\n"
MIXED = "all: [thing, animal]\nbird: animal\ncar: thing\ncat: animal\n"
MAPPINGS = "all: {animal: [cat, bird], thing: {car: []}}\n"


def inline(files: Files, tree: str) -> None:
    """A testenv whose tree begins on line 4."""
    text = indent(tree, "      ")
    files.write(
        "testenv.yaml", f"testenv:\n  dataset:\n    hierarchy:\n{text}\n    name: digits\n  metrics: [accuracy]\n"
    )


@pytest.mark.parametrize(
    "tree", [LINES, NESTED, MAPPINGS, "all: [thing, animal]\n" + LINES[: LINES.index("animal: all")]]
)
def test_lines_lists_and_mappings_say_the_same_tree_inline_and_in_a_file(files: Files, tree: str) -> None:
    inline(files, tree)
    [exam] = files.load().testenvs
    assert exam.dataset.hierarchy == tuple(sorted(TREE))
    files.write("tree.yaml", tree)
    files.dataset("name: digits", "hierarchy: ./tree.yaml")
    [again] = files.load().testenvs
    assert again.dataset.hierarchy == exam.dataset.hierarchy
    assert [metric.dataset_columns for metric in again.metrics] == [{"hierarchy": exam.dataset.hierarchy}]


def test_numbers_are_names_of_classes(files: Files) -> None:
    inline(files, "digit: {round: [0, 8], straight: [1]}")
    [exam] = files.load().testenvs
    assert dict(exam.dataset.hierarchy or ())["8"] == "round"


def test_without_the_key_nothing_knows_a_tree(files: Files) -> None:
    [exam] = files.load().testenvs
    assert exam.dataset.hierarchy is None
    assert [metric.dataset_columns for metric in exam.metrics] == [{}]


WRONG = [
    ("cat: animal\ndog: [cat]\nanimal: dog\n", "invalid-hierarchy", "2:7"),
    ("all: [cat, cat]\n", "invalid-hierarchy", "1:12"),
    ("cat: animal\ncar: thing\n", "invalid-hierarchy", "2:1"),
    ("{}\n", "invalid-hierarchy", "1:1"),
    ("a: b\nb: c\nc: a\nd: c\n", "invalid-hierarchy", "1:1"),
    ("cat: cat\n", "invalid-hierarchy", "1:1"),
    ("all: [cat, true]\n", "invalid-hierarchy", "1:12"),
    ("all: {cat: }\n", "invalid-hierarchy", "1:7"),
    ("cat: 1.5\n", "invalid-hierarchy", "1:1"),
    ("- cat\n", "invalid-hierarchy", "1:3"),
    ("0: even\n", "unsupported-yaml", "1:1"),
]


@pytest.mark.parametrize(("tree", "code", "at"), WRONG)
def test_a_slip_in_a_file_is_told_with_its_line(files: Files, tree: str, code: str, at: str) -> None:
    files.write("tree.yaml", tree)
    files.dataset("name: digits", "hierarchy: ./tree.yaml")
    assert (code, f"tree.yaml:{at}") in files.errors()


def test_a_slip_in_a_testenv_is_told_with_its_line(files: Files) -> None:
    inline(files, "cat: animal\ncar: thing")
    assert files.errors() == [("invalid-hierarchy", "testenv.yaml:5:7")]


def test_a_missing_file_is_told_where_it_is_named(files: Files) -> None:
    files.write("tree.yaml", "a: b\n")
    files.dataset("name: digits", "hierarchy: ./tre.yaml")
    assert files.errors() == [("missing-file", "testenv.yaml:4:16")]


def test_a_list_is_no_tree(files: Files) -> None:
    files.dataset("name: digits", "hierarchy: [a, b]")
    assert files.errors() == [("wrong-type", "testenv.yaml:4:16")]
