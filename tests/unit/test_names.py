"""No variable, function or module has a name that says nothing of what it holds (CONTRIBUTING, "How we write")."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "core"

BANNED = {
    *("anew", "asked", "dear", "found", "handed", "here", "kept", "known", "lent", "lies", "of"),
    *("one", "own", "said", "stands", "telling", "there", "told", "what", "who", "whose", "wild"),
}
LINKS = ("configs", "testalgorithms", "testenv")  # in a checkout, to folders beside core


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
    return [path for path in sorted((CORE / "ianvs").rglob("*.py")) if path.relative_to(CORE).parts[1] not in LINKS]


def test_names_say_what_they_hold() -> None:
    wrong = []
    for path in modules():
        place = path.relative_to(CORE / "ianvs").as_posix()
        wrong += [f"{place}:{name}" for name in banned_in(path.read_text(encoding="utf-8"))]
        if path.stem in BANNED:
            wrong.append(place)
    assert not wrong


@pytest.mark.parametrize(
    "source",
    ["found = 1", "def f(told): ...", "def asked(): ...", "for one in (): ...", "import json as said", "x.known = 1"],
)
def test_each_kind_of_binding_is_seen(source: str) -> None:
    assert banned_in(source)
