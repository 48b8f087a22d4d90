"""No variable, function or module has a name that says nothing of what it holds (CONTRIBUTING, "How we write")."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "configs", "examples", "testalgorithms", "testenv")

BANNED = {
    *("anew", "asked", "dear", "found", "handed", "here", "kept", "known", "lent", "lies", "of"),
    *("one", "own", "said", "stands", "telling", "there", "told", "what", "who", "whose", "wild"),
}
EXEMPT = {"inflora/basemodel.py": {"kept"}}  # a hyperparameter, which users write
PYTHON_BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def names_bound(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(name, line) of all that a module binds: variables, parameters, attributes, functions, classes, imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.alias(asname=str(name)):
                yield name, getattr(node, "lineno", 0)


def banned_in(source: str) -> list[str]:
    return [f"{line}: {name}" for name, line in names_bound(ast.parse(source)) if name.strip("_") in BANNED]


def modules() -> list[Path]:
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return list(dict.fromkeys(path.resolve() for path in paths))  # links in core lead to the other folders


def code_blocks() -> Iterator[tuple[str, str]]:
    """Yield (file:line, source) of the Python blocks in documents."""
    for path in [*sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("*.md"))]:
        text = path.read_text(encoding="utf-8")
        for block in PYTHON_BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            yield f"{path.relative_to(ROOT).as_posix()}:{line}", textwrap.dedent(block[1])


def test_names_say_what_they_hold() -> None:
    wrong = []
    for path in modules():
        place = path.relative_to(ROOT).as_posix()
        exempt = next((names for end, names in EXEMPT.items() if place.endswith(end)), set())
        banned = banned_in(path.read_text(encoding="utf-8"))
        wrong += [f"{place}:{name}" for name in banned if name.partition(": ")[2] not in exempt]
        if path.stem in BANNED:
            wrong.append(place)
    assert not wrong


def test_names_in_documents_say_what_they_hold() -> None:
    wrong = []
    for place, source in code_blocks():
        try:
            wrong += [f"{place}+{name}" for name in banned_in(source)]
        except SyntaxError:  # a fragment with "..." in the place of arguments
            continue
    assert not wrong


@pytest.mark.parametrize(
    "source",
    ["found = 1", "def f(told): ...", "def asked(): ...", "for one in (): ...", "import json as said", "x.known = 1"],
)
def test_each_kind_of_binding_is_seen(source: str) -> None:
    assert banned_in(source)
