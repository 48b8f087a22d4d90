"""A tree over the classes, as a testenv or a file of its own gives it, and what is wrong with one."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.config.conftest import Files

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
    assert [metric.tree for metric in again.metrics] == [exam.dataset.hierarchy]


def test_numbers_are_names_of_classes(files: Files) -> None:
    inline(files, "digit: {round: [0, 8], straight: [1]}")
    [exam] = files.load().testenvs
    assert dict(exam.dataset.hierarchy or ())["8"] == "round"


def test_without_the_key_nothing_knows_a_tree(files: Files) -> None:
    [exam] = files.load().testenvs
    assert exam.dataset.hierarchy is None
    assert [metric.tree for metric in exam.metrics] == [None]


WRONG = [
    ("cat: animal\ndog: [cat]\nanimal: dog\n", "2:7", "'cat' is below 'animal', and here below 'dog'. Keep one."),
    ("all: [cat, cat]\n", "1:12", "'cat' is below 'all', and here below 'all'. Keep one."),
    (
        "cat: animal\ncar: thing\n",
        "2:1",
        "a hierarchy has one root, found animal, thing. Put everything below one node.",
    ),
    ("{}\n", "1:1", "a hierarchy has one root, found none. Put everything below one node."),
    (
        "a: b\nb: c\nc: a\nd: c\n",
        "1:1",
        "the hierarchy has a cycle: 'a' is below 'b' is below 'c' is below 'a'. Take one out.",
    ),
    ("cat: cat\n", "1:1", "the hierarchy has a cycle: 'cat' is below 'cat'. Take one out."),
    ("all: [cat, true]\n", "1:12", "nodes of a hierarchy are names, found true below the text 'all'. {how}"),
    ("all: {cat: }\n", "1:7", "nodes of a hierarchy are names, found nothing below the text 'cat'. {how}"),
    ("cat: 1.5\n", "1:1", "nodes of a hierarchy are names, found the text 'cat' below the number 1.5. {how}"),
    ("- cat\n", "1:3", "nodes of a hierarchy are names, found the text 'cat' below nothing. {how}"),
    ("0: even\n", "1:1", "key 0 is not text. Put it in quotes: '0'."),
]
HOW = "Write 'child: parent' or 'parent: [child, child]'."


@pytest.mark.parametrize(("tree", "place", "message"), WRONG)
def test_a_slip_in_a_file_is_told_with_its_line(files: Files, tree: str, place: str, message: str) -> None:
    files.write("tree.yaml", tree)
    files.dataset("name: digits", "hierarchy: ./tree.yaml")
    assert f"tree.yaml:{place}: {message.format(how=HOW)}" in files.errors()


def test_a_slip_in_a_testenv_is_told_with_its_line(files: Files) -> None:
    inline(files, "cat: animal\ncar: thing")
    message = "a hierarchy has one root, found animal, thing. Put everything below one node."
    assert files.errors() == [f"testenv.yaml:5:7: {message}"]


def test_a_missing_file_is_told_where_it_is_named(files: Files) -> None:
    files.write("tree.yaml", "a: b\n")
    files.dataset("name: digits", "hierarchy: ./tre.yaml")
    [message] = files.errors()
    assert message.startswith("testenv.yaml:4:16: there is no file './tre.yaml'.")
    assert message.endswith("Did you mean 'tree.yaml'?")


def test_a_list_is_no_tree(files: Files) -> None:
    files.dataset("name: digits", "hierarchy: [a, b]")
    assert files.errors() == ["testenv.yaml:4:16: hierarchy should be text or a mapping, found a list."]
