"""Which contract an algorithm's plugins are written for, as their imports tell. Nothing of theirs is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from ianvs.config.models.base import at
from ianvs.config.models.contract_name import NATIVE, contract_names

__all__ = ["IANVS", "contract_of", "is_ianvs_plugin"]

IANVS = "ianvs"
"""What files call this contract."""

_REGISTRY = "sedna.common.class_factory"


def contract_of(algorithm: object, files: Iterable[Path]) -> str | None:
    """Of what stands below `algorithm:`; None where neither the key `contract` nor any file tells.

    files: of its modules, those that are there; a module without one is an installed class, or built in. A file that
    registers with sedna's ClassFactory makes it an algorithm of KubeEdge Ianvs.
    """
    said = at(algorithm, "contract")
    if isinstance(said, str) and said in contract_names():
        return said
    found = [is_ianvs_plugin(file) for file in files]
    if any(found):
        return IANVS
    return NATIVE if found else None


def is_ianvs_plugin(file: Path) -> bool:
    """Whether a python file, or any of a package's folder, imports sedna's ClassFactory, wherever in it."""
    return any(map(_imports_registry, sorted(file.rglob("*.py")) if file.is_dir() else [file]))


def _imports_registry(file: Path) -> bool:
    try:
        text = file.read_bytes()
        if b"class_factory" not in text:
            return False  # most files, without a look at their syntax
        return any(_REGISTRY in names for names in _imported(ast.parse(text)))
    except (OSError, SyntaxError, ValueError):
        return False  # who imports it reports it in full


def _imported(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield tuple(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            base = node.module or ""
            yield (base, *(f"{base}.{alias.name}" for alias in node.names))
