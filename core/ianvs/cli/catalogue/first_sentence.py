"""What a class or function says of itself first, read from its file unrun: importing torch takes seconds."""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import lru_cache
from pathlib import Path

__all__ = ["first_sentence", "learners_of", "said_at"]


def said_at(value: str) -> str:
    """The first sentence of what an entry point names ("package.module:Class"), or of its module; "" if none is found.

    A module of another package may make its parent packages run; whatever they raise counts as nothing said.
    """
    module, _, name = value.partition(":")
    try:
        found = importlib.util.find_spec(module)
    except Exception:
        return ""
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return ""
    tree = _tree(Path(found.origin))
    if tree is None:
        return ""
    defined = next((node for node in _definitions(tree) if node.name == name), None)
    return first_sentence((defined and ast.get_docstring(defined)) or ast.get_docstring(tree) or "")


def learners_of(file: Path) -> list[tuple[str, str]]:
    """(name, first sentence) of the public classes in a file that stand on one of our learners."""
    tree = _tree(file)
    own = [] if tree is None else [node for node in _definitions(tree) if isinstance(node, ast.ClassDef)]
    learners = [node for node in own if any(ast.unparse(base).endswith("Learner") for base in node.bases)]
    said = [(node.name, first_sentence(ast.get_docstring(node) or "")) for node in learners]
    return [(name, summary) for name, summary in said if not name.startswith("_")]


def first_sentence(text: str) -> str:
    """Of its first paragraph, in one line, without its full stop."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    end = re.search(r"(?<![ (]al)(?<!\be\.g)(?<!\bi\.e)[.](?= [A-Z`]|$)", paragraph)
    return paragraph[: end.start()] if end else paragraph


@lru_cache(maxsize=256)
def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None


def _definitions(tree: ast.Module) -> list[ast.ClassDef | ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
