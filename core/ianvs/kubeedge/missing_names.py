"""Finds names that a plugin's files import from neighbouring files without being defined there, by syntax trees."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ianvs.kubeedge.needed_packages import module_files
from ianvs.plugins.local_imports import origin_of


@dataclass(frozen=True)
class MissingName:
    """A name that is imported in `line` of `file` from `source`, which does not define it."""

    name: str
    source: Path
    file: Path
    line: int


def missing_names(files: Sequence[Path], folders: Sequence[Path]) -> Iterator[MissingName]:
    """Yield undefined names that `files`, and local modules that these import, import at their top, each once.

    A source with names that its syntax does not determine (`from x import *`, a function `__getattr__`) is left out.
    """
    search = [str(folder) for folder in dict.fromkeys([*(file.parent for file in files), *folders])]
    reported = set()
    for file in module_files(files, search):
        for node in _parsed(file).body:
            if not isinstance(node, ast.ImportFrom):
                continue
            places = [str(file.parents[node.level - 1])] if node.level else search
            source = origin_of(node.module, places) if node.module else str(Path(places[0]) / "__init__.py")
            names = _defined(Path(source)) if source and source.endswith(".py") else None
            for alias in node.names if names is not None and node.names[0].name != "*" else ():
                inside = f"{node.module}.{alias.name}" if node.module else alias.name
                key = (alias.name, source)
                if alias.name not in names and origin_of(inside, places) is None and key not in reported:  # type: ignore[operator]
                    reported.add(key)
                    yield MissingName(alias.name, Path(source or ""), file, node.lineno)


@cache
def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _defined(file: Path) -> set[str] | None:
    """Return all names bound anywhere in a file, too many rather than too few; None if they can't be determined."""
    names = {"__file__", "__name__", "__doc__", "__path__"}
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    unsettled = {"*", "__getattr__"} & names or not file.is_file()
    return None if unsettled or "globals" in ast.dump(_parsed(file)) else names
