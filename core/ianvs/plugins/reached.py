"""What of authors' files a class can reach, as digests of syntax trees: rather too much than too little.

docs/decisions/002-identity.md has the rules, and says why.
"""

import ast
import builtins
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ianvs.base.package import own_name
from ianvs.base.source_files import read_source

# Names that reach whatever is in the file, whatever is in any file, and the text of files.
_OWN_FILE = frozenset(("globals", "locals", "vars", "dir", "__dict__"))
_ALL_FILES = frozenset(("importlib", "__import__", "runpy", "pkgutil", "inspect", "__subclasses__", "__globals__"))
_ALL_FILES |= {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "allow_pickle", "weights_only"}
_ALL_FILES |= {"__code__", "f_globals", "f_locals", "__loader__", "__spec__", "get_type_hints", "get_objects"}
_ALL_FILES |= {"builtins", "__builtins__", "pydoc", "locate", "instantiate", "import_string", "unsafe_load"}
_TEXT = frozenset(("__doc__", "getdoc", "getsource", "getsourcelines", "getcomments", "get_source", "linecache"))
_TEXT |= {"tokenize", "_getframe", "currentframe", "f_lineno", "tb_lineno", "co_firstlineno"}
_RUN_TEXT = frozenset(("eval", "exec", "compile"))

_PLAIN_DECORATORS = ("property", "staticmethod", "classmethod")
_PLAIN = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp),
    *(ast.Subscript, ast.Slice, ast.expr_context, ast.operator, ast.unaryop),
)
_WORD = re.compile(r"[^\W\d]\w*|[*]")

Local = Callable[[str], Iterable[Path]]
"""The local files that an import of a dotted name runs; relative ones have their folder before a ":"."""


class _Part(NamedTuple):
    """A statement of a module's own level. words: all names in it. names: those that it uses, and does not import.

    bare: of these those not used for an attribute alone. binds: what is not there without it; () if it counts
    whatever is reached. imports: modules that run with it.
    """

    text: str
    words: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    binds: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()


class _Module(NamedTuple):
    """imported: by name, (module, what of it); what is "" for the module itself. defined: names that it may have."""

    parts: tuple[_Part, ...]
    imported: Mapping[str, list[tuple[str, str]]]
    defined: frozenset[str]


def reached(entry: Path, name: str, local: Local, digest: Callable[[Path], str]) -> dict[Path, str]:
    """{file: digest} of `entry` and all local files that run with it, by what the object `name` can reach in them.

    digest: of a file's bytes, by which our own files count.
    """
    taken: dict[Path, set[int]] = {}
    waiting: list[tuple[Path, _Part]] = []
    everywhere = False  # whether all of each file counts

    def module(path: Path) -> _Module:
        return _parsed(path, digest(path), own_name(path) is not None)

    def take(path: Path, wanted: Callable[[_Part], bool]) -> None:
        first = path not in taken
        had = taken.setdefault(path, set())
        for index, part in enumerate(module(path).parts):
            if index not in had and (wanted(part) or everywhere or (first and not part.binds)):
                had.add(index)
                waiting.append((path, part))

    def reach(path: Path, name: str) -> None:
        """From another file, or as what is asked for."""
        every = "__getattr__" in module(path).defined
        take(path, lambda part: every or name in part.binds)
        follow_import(path, name, name, whole=True)

    def follow_import(path: Path, name: str, *mentioned: str, whole: bool) -> None:
        for dotted, what in module(path).imported.get(name, ()):
            for file in local(dotted):
                if (file, what, name, path) not in followed or not what:
                    followed.add((file, what, name, path))
                    # Of a module within a package, named by the package, it can't be seen what becomes of it.
                    every = what == "*" or (not what and (whole or dotted.startswith(f"{name}.")))
                    take(file, lambda part, every=every: every)  # type: ignore[misc]
                    for wanted in [what] if what else [] if every else mentioned:
                        reach(file, wanted)

    followed: set[tuple[Path, str, str, Path]] = set()
    found = name in module(entry).defined
    take(entry, lambda part: not found or name in part.binds)
    text_counts = False
    while waiting:
        path, part = waiting.pop()
        text_counts |= not _TEXT.isdisjoint(part.words)
        for dotted in part.imports:
            for file in local(dotted):
                take(file, lambda part: False)
        far = not _ALL_FILES.isdisjoint(part.words) or not _RUN_TEXT.isdisjoint(part.bare)
        if far or {"sys", "modules"} <= part.words:
            everywhere = True
            for file in tuple(taken):
                take(file, lambda part: True)
        own = not _OWN_FILE.isdisjoint(part.names)
        take(path, lambda other, own=own, names=part.names: own or not names.isdisjoint(other.binds))  # type: ignore[misc]
        for each in part.names:
            follow_import(path, each, *part.names, whole=each in part.bare)

    def told(path: Path) -> str:
        if text_counts or own_name(path) is not None:
            return digest(path)
        text = "\n".join(part.text for index, part in enumerate(module(path).parts) if index in taken[path])
        return f"tree:{hashlib.sha256(text.encode()).hexdigest()}"

    return {path: told(path) for path in taken}


@lru_cache(maxsize=4096)
def _parsed(path: Path, digest: str, ours: bool) -> _Module:
    try:
        tree = ast.parse(read_source(path))
    except (SyntaxError, ValueError):  # the loader reports it
        return _Module((_Part(digest),), {}, frozenset())
    if ours:
        modules = dict.fromkeys(name for node in ast.walk(tree) for name in modules_of(node, path))
        return _Module((_Part("", imports=tuple(modules)),), {}, frozenset())
    imported: dict[str, list[tuple[str, str]]] = {}
    for node in ast.walk(tree):
        for bound, dotted, what in _bindings(node, path):
            imported.setdefault(bound, []).append((dotted, what))
    plain: set[str] = set()  # classes
    parts = []
    for statement in tree.body:
        if not _says_nothing(statement):
            binds = _binds(statement, plain, imported)
            parts.append(_part(statement, path, binds))
            if isinstance(statement, ast.ClassDef):
                plain = plain - {statement.name} | set(binds)
    names = (name for part in parts for name in (part.binds or part.names))
    return _Module(tuple(parts), imported, frozenset(names) | imported.keys())


def modules_of(node: ast.AST, path: Path) -> Iterator[str]:
    """Dotted names of what an import statement in the file may run; relative ones with their folder before a ":"."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = f"{path.parents[node.level - 1]}:{node.module or ''}" if node.level else node.module or ""
        yield base
        yield from (f"{base}{'' if base.endswith(':') else '.'}{alias.name}" for alias in node.names)


def _bindings(node: ast.AST, path: Path) -> Iterator[tuple[str, str, str]]:
    """(name, module, what of it) that an import binds."""
    modules = list(modules_of(node, path))
    if isinstance(node, ast.Import):
        for alias in node.names:
            names = alias.name.split(".")
            for count in range(1, len(names) + 1) if alias.asname is None else [len(names)]:
                yield alias.asname or names[0], ".".join(names[:count]), ""
    elif isinstance(node, ast.ImportFrom):
        for alias, dotted in zip(node.names, modules[1:], strict=True):
            yield alias.asname or alias.name, modules[0], alias.name
            yield alias.asname or alias.name, dotted, ""


def _part(statement: ast.stmt, path: Path, binds: tuple[str, ...]) -> _Part:
    nodes = list(ast.walk(statement))
    of_attributes = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    bare = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in of_attributes}
    silent = {id(node.value) for node in nodes if isinstance(node, ast.Expr) and _says_nothing(node)}
    fields = (value for node in nodes if id(node) not in silent for value in vars(node).values())
    every = (one for value in fields for one in (value if isinstance(value, list) else [value]))
    words = frozenset(word for one in every if isinstance(one, str) for word in _WORD.findall(one))
    names = words & {"*"} if isinstance(statement, ast.Import | ast.ImportFrom) else words
    modules = dict.fromkeys(name for node in nodes for name in modules_of(node, path))
    return _Part(_text(statement), words, names, frozenset(bare), binds, tuple(modules))


def _says_nothing(node: object) -> bool:
    """A docstring or another text that nobody takes, or `pass`."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, ast.Pass)


def _text(node: object) -> str:
    """As ast.dump, without what says nothing, and without empty fields, in which versions of Python differ."""
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name not in ("ctx", "type_comment"))
        return f"{type(node).__name__}({','.join(f'{k}={_text(v)}' for k, v in fields if v not in (None, []))})"
    if isinstance(node, list):
        return f"[{','.join(_text(one) for one in node if not _says_nothing(one))}]"
    return ascii(node)


def _binds(node: ast.stmt, plain: set[str], imported: Mapping[str, list[tuple[str, str]]]) -> tuple[str, ...]:
    """The names that the definition binds; () where it may do more. plain: classes that take no note of others."""
    match node:
        case ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[]):
            args = node.args
            every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            hints = (arg.annotation for arg in every if arg is not None)
            names = (node.name,) if _is_plain(*args.defaults, *args.kw_defaults, *hints, node.returns) else ()
        case ast.ClassDef(decorator_list=[], keywords=[]):
            bases = all(_is_plain_base(base, plain, imported) for base in node.bases)
            names = (node.name,) if bases and all(_is_plain_inside(one, plain, imported) for one in node.body) else ()
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            names = (name,) if _is_plain(value) else ()
        case ast.AnnAssign(target=ast.Name(id=name)):
            names = (name,) if _is_plain(node.value, node.annotation) else ()
        case _:
            names = ()
    return () if names and names[0].startswith("__") and names[0] != "__all__" else names


def _is_plain_base(base: ast.expr, plain: set[str], imported: Mapping[str, list[tuple[str, str]]]) -> bool:
    said = ast.unparse(base)
    root, _, rest = said.partition(".")
    if root not in imported:
        return said in plain or isinstance(vars(builtins).get(said), type)
    dotted, what = imported[root][0]
    return ".".join(filter(None, (dotted, what, rest))) in ("torch.nn.Module", "abc.ABC", "torch.utils.data.Dataset")


def _is_plain_inside(node: ast.stmt, plain: set[str], imported: Mapping[str, list[tuple[str, str]]]) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if node.name in ("__init_subclass__", "__class_getitem__"):
            return False
        if all(ast.unparse(one) in _PLAIN_DECORATORS for one in node.decorator_list):
            node = ast.FunctionDef("_", node.args, [], [], node.returns)
    return _says_nothing(node) or bool(_binds(node, plain, imported))


def _is_plain(*nodes: ast.expr | None) -> bool:
    """Whether to evaluate the expressions calls nothing."""
    return all(isinstance(part, _PLAIN) for node in nodes if node is not None for part in ast.walk(node))
