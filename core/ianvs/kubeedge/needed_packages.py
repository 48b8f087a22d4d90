"""Reads imports and registrations of plugins for KubeEdge Ianvs from their syntax trees, without running them.

A plugin's folder, those of the other modules and the working directory are searched before installed packages, as they
are when the plugin is imported.
"""

import ast
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.machinery import PathFinder
from itertools import islice
from pathlib import Path

from ianvs.base.secrets import is_secret
from ianvs.plugins.local_imports import origin_of

PROVIDED = ("sedna", "core")  # provided in the process of such plugins, before installed packages
_MOST = 20_000  # maximum number of searched entries of a plugin's folder for a missing module
_READS = re.compile(r"(?:os\.)?(?:environ\[|environ\.get\(|getenv\()'(\w+)'[])]")  # a variable, with no default
_OPTIONAL = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")
_KNOWN = json.loads(Path(__file__).with_name("known_packages.json").read_bytes())
_DISTRIBUTIONS: dict[str, str] = {**{name: name for name in _KNOWN["called_the_same"]}, **_KNOWN["called_otherwise"]}
"""Package names for pip by module. Others are not suggested, because guessed names may belong to malicious packages."""


@dataclass(frozen=True)
class Missing:
    """A module that is imported in `line` of `file` and can't be found."""

    name: str
    file: Path
    line: int
    lazily: bool  # imported by a function, not by the file
    remedy: str  # the remedy, a sentence


@dataclass(frozen=True)
class _Import:
    name: str  # dotted
    level: int  # the level of a relative import
    line: int
    lazily: bool
    instead: tuple[str, ...] = ()  # the import is used only if one of these fails


def missing_packages(files: Sequence[Path], folders: Sequence[Path]) -> list[Missing]:
    """Return modules that `files`, and what these import, need and that are neither installed nor local, each once."""
    by_remedy: dict[str, Missing] = {}
    near = list(dict.fromkeys(file.parent for file in files))
    search = [str(folder) for folder in (*near, *folders)]
    importable = partial(_importable, folders=search)
    for file, imported in _reached(files, search):
        if (
            not imported.name
            or importable(imported.name)
            or (imported.instead and all(map(importable, imported.instead)))
        ):
            continue
        name, remedy = _remedy(imported.name, near, search)
        before = by_remedy.get(remedy)
        if before is None or (before.lazily and not imported.lazily):
            by_remedy[remedy] = Missing(name, file, imported.line, imported.lazily, remedy)
    return list(by_remedy.values())


def registered_names(file: Path, folders: Sequence[Path]) -> set[str] | None:
    """Return the names that `file` and its local imports register; None if their syntax does not determine them."""
    names: set[str] = set()
    search = [str(folder) for folder in (file.parent, *folders)]
    for source in dict.fromkeys([file, *(reached for reached, _ in _reached([file], search))]):
        tree = _tree(source)
        if tree is None:
            return None
        for call, target in _registrations(tree):
            if target is None:
                return None
            given = [keyword.value for keyword in call.keywords if keyword.arg == "alias"] or call.args[1:2]
            if given and not (isinstance(given[0], ast.Constant) and isinstance(given[0].value, str | None)):
                return None
            names.add(given[0].value if given and given[0].value else target)  # type: ignore[attr-defined]
    return names


def module_files(files: Sequence[Path], folders: Sequence[str]) -> list[Path]:
    """Return `files` and the local modules imported with them, without those that only functions import."""
    return list(dict.fromkeys(file for file, imported in _reached(files, folders) if not imported.lazily))


def _registrations(tree: ast.AST) -> Iterator[tuple[ast.Call, str | None]]:
    """Yield (the call of ClassFactory, what it decorates); None for a call that is no decorator."""
    decorated = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef))
    decorators = {id(decorator): node.name for node in decorated for decorator in node.decorator_list}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            factory = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            if factory == "ClassFactory" and node.func.attr.startswith("register"):
                yield node, decorators.get(id(node))


def _reached(files: Sequence[Path], folders: Sequence[str]) -> Iterator[tuple[Path, _Import]]:
    """Yield (file, import) of all imports in `files` and, recursively, in their local modules.

    "" first for each file.
    """
    waiting = [(file, False) for file in files]
    seen: set[tuple[Path, bool]] = set()
    while waiting:
        file, lazily = waiting.pop()
        if (file, False) in seen or (file, lazily) in seen:
            continue
        seen.add((file, lazily))
        tree = _tree(file)
        yield file, _Import("", 0, 0, lazily)
        for imported in _imports(tree, lazily) if tree is not None else ():
            search = [str(file.parents[imported.level - 1])] if imported.level else folders
            if not imported.level:
                if imported.name.partition(".")[0] in (*PROVIDED, *sys.stdlib_module_names):
                    continue
                yield file, imported
            waiting += [(inner, imported.lazily) for inner in _files_of(imported.name, search)]


def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _imports(tree: ast.Module, lazily: bool) -> Iterator[_Import]:
    """Yield imports, except under a `try` that continues without them, and in scripts or for type checkers only."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, lazily)]  # lazily: a function imports the file itself
    while waiting:
        node, lazily = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (_Import(alias.name, 0, node.lineno, lazily) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield _Import(node.module or "", node.level, node.lineno, lazily)
        elif isinstance(node, ast.Try) and any(map(_goes_on, node.handlers)):
            waiting += [(inner, lazily) for inner in (*node.orelse, *node.finalbody)]
            first = tuple(each.name for each in _imports(ast.Module(node.body, []), lazily) if not each.level)
            for each in _imports(ast.Module([s for h in node.handlers for s in h.body], []), lazily) if first else ():
                yield replace(each, instead=each.instead or first)
        elif isinstance(node, ast.If) and ("TYPE_CHECKING" in (test := ast.unparse(node.test)) or "__main__" in test):
            waiting += [(inner, lazily) for inner in node.orelse]
        else:
            inside = lazily or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            waiting += [(inner, inside) for inner in ast.iter_child_nodes(node)]


def _goes_on(handler: ast.ExceptHandler) -> bool:
    caught = "Exception" if handler.type is None else ast.unparse(handler.type)
    raises = any(isinstance(node, ast.Raise) for statement in handler.body for node in ast.walk(statement))
    return not raises and any(name in caught for name in _OPTIONAL)


def _importable(dotted: str, folders: Sequence[str]) -> bool:
    """Return whether a module can be imported. For an installed package only its top level is checked."""
    top = dotted.partition(".")[0]
    search = [*folders, *sys.path]  # a package with a file anywhere precedes a folder without one
    spec = PathFinder.find_spec(top, search)
    if spec is None:
        return top in sys.modules
    places = [place for place in (spec.origin, *(spec.submodule_search_locations or ())) if place]
    near = any(Path(place).is_relative_to(folder) for place in places for folder in folders)
    return not near or origin_of(dotted, search) is not None


def _files_of(dotted: str, folders: Sequence[str]) -> list[Path]:
    """Return the file of a local module, and those of its parent packages, which are imported first."""
    parts = dotted.split(".") if dotted else []
    names = [".".join(parts[: n + 1]) for n in range(len(parts))] or ["__init__"]
    origins = (origin_of(name, folders) for name in names)
    return [Path(origin) for origin in origins if origin and origin.endswith(".py")]


def _remedy(dotted: str, near: Sequence[Path], folders: Sequence[str]) -> tuple[str, str]:
    """Return (what is missing, the remedy): equal for all modules with the same remedy."""
    top = dotted.partition(".")[0]
    spec = PathFinder.find_spec(top, folders)
    places = [] if spec is None or spec.origin is None else [Path(spec.origin)]
    # The path in a checkout.
    examples = [parent for folder in near[:1] for parent in folder.parents if parent.name == "examples"]
    for folder in (*near, *examples[:1]) if not places else ():
        some = islice(folder.rglob("*"), _MOST * (10 if folder in examples else 1))
        matches = [path for path in (folder, *some) if path.name.split("-")[0] in (top, f"{top}.py")]
        if wheel := next((path for path in matches if path.suffix == ".whl"), None):
            return top, f"The checkout brings it: pip install {wheel}."
        places += (matches := sorted(path for path in matches if path.name in (top, f"{top}.py")))
        if good := [str(path.parent) for path in matches if origin_of(dotted, [str(path.parent)]) is not None]:
            which = "that folder" if len(good) == 1 else "the one that belongs to this plugin"
            return dotted if len(good) == 1 else top, f"It is in {', '.join(good)}: set PYTHONPATH to {which}."
    if places:
        return dotted, f"{places[0]} has no '{dotted}': a file that belongs to the plugin is missing."
    if home := next((folder for folder in near if _names_its_own(folder, top)), None):
        return dotted, f"There is no {home / top}: a file that belongs to the plugin is missing."
    if top in _DISTRIBUTIONS:
        return top, f"Install it (pip install {_DISTRIBUTIONS[top]}), or set PYTHONPATH to the folder that has it."
    return top, f"Which package has '{top}' is not known here: its README may tell. Or set PYTHONPATH to where it lies."


def _names_its_own(folder: Path, top: str) -> bool:
    """Return whether code in a plugin's folder indicates that `top` is there, such as a path added to sys.path."""
    texts = (file.read_text(encoding="utf-8", errors="replace") for file in sorted(folder.glob("*.py")))
    return any(f"{folder.name}/{top}" in text for text in texts)


def unset_keys(files: Sequence[Path], folders: Sequence[Path]) -> Iterator[tuple[str, Path, int]]:
    """Yield (name, file, line) of each secret that the files, or their imports, read from an unset variable."""
    search = [str(folder) for folder in (*(file.parent for file in files), *folders)]
    reported = set()
    for file in dict.fromkeys(file for file, _ in _reached(files, search)):
        for node in ast.walk(_tree(file) or ast.Module([], [])):
            if not isinstance(node, ast.Call | ast.Subscript) or isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            read = _READS.fullmatch(ast.unparse(node))
            if read and is_secret(name := read[1]) and not os.environ.get(name) and name not in reported:
                reported.add(name)
                yield name, file, node.lineno
