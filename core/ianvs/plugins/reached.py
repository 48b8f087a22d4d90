"""What of an author's files a class can reach, as digests of syntax trees: comments, docstrings and layout don't count.

A file counts by the statements that run when it is imported, and by those definitions that are named, transitively, by
what is reached. A definition that nothing names is left out only if it surely does nothing: no decorator, no call, no
base class that could take note of it. Names are compared as texts, as attributes and in quotes too, so that rather too
much counts than too little; where names are computed, all of a file counts, and where text is read, its bytes.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ianvs.base.package import own_name

_OWN_FILE = frozenset({"globals", "locals", "vars", "__dict__", "__builtins__", "dir"})
_ALL_FILES = frozenset(
    "importlib __import__ runpy pkgutil inspect pickle dill cloudpickle joblib shelve marshal allow_pickle weights_only "
    "__subclasses__ __globals__ __code__ f_globals f_locals __loader__ __spec__ get_type_hints get_objects".split()
)
_TEXT = frozenset(
    "__doc__ getdoc getsource getsourcelines getcomments linecache tokenize _getframe currentframe f_lineno tb_lineno "
    "co_firstlineno get_source".split()
)
_PLAIN_BASES = ("torch.nn.Module", "torch.utils.data.Dataset", "abc.ABC", "typing.Protocol")  # they note no subclass
_PLAIN_DECORATORS = ("property", "staticmethod", "classmethod", "abstractmethod", "abc.abstractmethod")
_PLAIN = (ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp)
_PLAIN += (ast.Subscript, ast.Slice, ast.expr_context, ast.operator, ast.unaryop)
_RUN_TEXT = frozenset({"eval", "exec", "compile"})
_WORD = re.compile(r"[^\W\d]\w*")
_LONGEST = 1000  # characters of a text that are looked at for names


@dataclass(frozen=True)
class _Part:
    """A statement of a module's own level. names: all that it mentions, as names, attributes and quoted words.

    bare: names that are used as they are, not for an attribute. binds: what is not there without it; "" if it counts
    whatever is reached. imports: modules that run with it, dotted as in `Local`.
    """

    text: str
    names: frozenset[str]
    bare: frozenset[str]
    binds: str
    imports: tuple[str, ...]


@dataclass(frozen=True)
class _Module:
    """imported: by bound name, (module, what of it; "" for the module itself)."""

    parts: tuple[_Part, ...]
    bound: Mapping[str, tuple[int, ...]]
    imported: Mapping[str, tuple[tuple[str, str], ...]]
    defined: frozenset[str]


Local = Callable[[Path, str], Iterable[Path]]
"""The local files that an import of a dotted name in a file runs; relative ones have their folder before a ":"."""


def reached(entry: Path, name: str, local: Local, digest: Callable[[Path], str]) -> dict[Path, str]:
    """{file: digest} of `entry` and all local files that run with it, by what the object `name` can reach in them.

    local: of an import in a file. digest: of a file's bytes, which count where no tree can tell.
    """
    walk = _Walk(local, digest)
    walk.run(entry)
    if name in walk.module(entry).defined:
        walk.reach(entry, name)
    else:
        walk.take_all(entry)
    return walk.digests()


@dataclass
class _Walk:
    local: Local
    digest: Callable[[Path], str]
    taken: dict[Path, set[int]] = field(default_factory=dict)
    waiting: list[tuple[Path, int]] = field(default_factory=list)
    all_matter: bool = False
    text_matters: bool = False

    def module(self, path: Path) -> _Module:
        return _parsed(path, self.digest(path), own_name(path) is not None)

    def run(self, path: Path) -> None:
        """The file is imported."""
        if path not in self.taken:
            self.taken[path] = set()
            parts = self.module(path).parts
            self._take(path, (index for index, part in enumerate(parts) if self.all_matter or not part.binds))

    def reach(self, path: Path, name: str) -> None:
        """Whatever the file binds to the name."""
        self.run(path)
        self._take(path, self.module(path).bound.get(name, ()))

    def take_all(self, path: Path) -> None:
        self.run(path)
        self._take(path, range(len(self.module(path).parts)))

    def digests(self) -> dict[Path, str]:
        while self.waiting:
            path, index = self.waiting.pop()
            self._follow(path, self.module(path).parts[index])
        return {path: self._digest_of(path) for path in self.taken}

    def _take(self, path: Path, indices: Iterable[int]) -> None:
        new = set(indices) - self.taken[path]
        self.taken[path] |= new
        self.waiting += [(path, index) for index in new]

    def _follow(self, path: Path, part: _Part) -> None:
        self.text_matters |= not _TEXT.isdisjoint(part.names)
        for dotted in part.imports:
            for file in self.local(path, dotted):
                self.run(file)
        if not (self.all_matter or _ALL_FILES.isdisjoint(part.names)) or {"sys", "modules"} <= part.names:
            self.all_matter = True
            for file in tuple(self.taken):
                self.take_all(file)
        if not _OWN_FILE.isdisjoint(part.names) or not _RUN_TEXT.isdisjoint(part.bare):
            self.take_all(path)
        imported = self.module(path).imported
        for name in part.names:
            self.reach(path, name)
            for dotted, what in imported.get(name, ()):
                for file in self.local(path, dotted):
                    if what == "*" or (not what and name in part.bare):
                        self.take_all(file)
                    for wanted in [what] if what else part.names:
                        self._reach_from_outside(file, wanted)

    def _reach_from_outside(self, path: Path, name: str) -> None:
        self.reach(path, name)
        if "__getattr__" in self.module(path).defined:
            self.take_all(path)
        for dotted, what in self.module(path).imported.get(name, ()):
            for file in self.local(path, dotted) if not what else ():
                self.take_all(file)  # a module that is handed on: who uses what of it can't be seen

    def _digest_of(self, path: Path) -> str:
        if self.text_matters or own_name(path) is not None:
            return self.digest(path)
        parts = self.module(path).parts
        text = "\n".join(parts[index].text for index in sorted(self.taken[path]))
        return f"tree:{hashlib.sha256(text.encode()).hexdigest()}"


@lru_cache(maxsize=4096)
def _parsed(path: Path, digest: str, ours: bool) -> _Module:
    """digest: of the file's bytes, by which it counts if it is one of ours."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        tree = ast.Module()  # the loader reports it
        ours = True
    if ours:
        modules = dict.fromkeys(name for node in ast.walk(tree) for name in modules_of(node, path))
        whole = _Part(digest, frozenset(), frozenset(), "", tuple(modules))
        return _Module((whole,), {}, {}, frozenset())
    imported: dict[str, list[tuple[str, str]]] = {}
    for node in ast.walk(tree):
        for bound, dotted, what in _bindings(node, path):
            imported.setdefault(bound, []).append((dotted, what))
    parts = tuple(part for statement in tree.body for part in _parts(statement, path, _Plain(tree, imported)))
    bound: dict[str, list[int]] = {}
    for index, part in enumerate(parts):
        for name in part.binds.split():
            bound.setdefault(name, []).append(index)
    defined = {name for part in parts if not part.binds for name in part.names} | set(bound)
    return _Module(parts, bound, imported, frozenset(defined))


def modules_of(node: ast.AST, path: Path) -> Iterator[str]:
    """Dotted names of what an import statement in the file may run; relative ones with their folder before a ":"."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _base(node, path)
        yield base
        yield from (f"{base}{'' if base.endswith(':') else '.'}{alias.name}" for alias in node.names)


def _base(node: ast.ImportFrom, path: Path) -> str:
    return f"{path.parents[node.level - 1]}:{node.module or ''}" if node.level else node.module or ""


def _bindings(node: ast.AST, path: Path) -> Iterator[tuple[str, str, str]]:
    """(name, module, what of it) that an import binds; what is "" for the module itself."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            names = alias.name.split(".")
            for count in range(1, len(names) + 1) if alias.asname is None else [len(names)]:
                yield alias.asname or names[0], ".".join(names[:count]), ""
    elif isinstance(node, ast.ImportFrom):
        for alias, dotted in zip(node.names, list(modules_of(node, path))[1:], strict=True):
            yield alias.asname or alias.name, _base(node, path), alias.name
            yield alias.asname or alias.name, dotted, ""


def _parts(statement: ast.stmt, path: Path, plain: _Plain) -> Iterator[_Part]:
    if isinstance(statement, ast.ImportFrom):  # the module runs, whatever is taken from it
        yield _part(ast.ImportFrom(statement.module, [], statement.level), path, "", statement)
        for alias in statement.names:
            one = ast.ImportFrom(statement.module, [alias], statement.level)
            yield _part(one, path, "" if alias.name == "*" else alias.asname or alias.name)
    elif not _says_nothing(statement) and not _is_for_a_script(statement):
        yield _part(statement, path, " ".join(plain.binds(statement)))


def _part(statement: ast.stmt, path: Path, binds: str, imports: ast.stmt | None = None) -> _Part:
    nodes = list(ast.walk(statement))
    names: set[str] = set()
    for node in nodes:
        names.update(_mentioned(node))
    looked_into = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    bare = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in looked_into}
    inside = [] if isinstance(statement, ast.ImportFrom) else nodes
    modules = (name for node in [*inside, *([imports] if imports else [])] for name in modules_of(node, path))
    return _Part(_text(statement), frozenset(names), frozenset(bare), binds, tuple(dict.fromkeys(modules)))


def _mentioned(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.AsyncFunctionDef(name=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.alias(name=name, asname=other):
            yield from (*name.split("."), *([other] if other else []))
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.Constant(value=str(text)):
            yield from (word for word in _WORD.findall(text[:_LONGEST]))


def _says_nothing(node: ast.AST) -> bool:
    """A docstring, or another text that nobody takes."""
    text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return text or isinstance(node, ast.Pass)


def _is_for_a_script(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`, which no import runs."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    return _text(node.test) == _text(ast.parse("__name__ == '__main__'", mode="eval").body)


def _text(node: object) -> str:
    """As ast.dump, without what says nothing; fields that are empty are left out, as versions of Python differ in them."""
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!a}"
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name not in ("ctx", "type_comment"))
        said = ",".join(f"{name}={_text(value)}" for name, value in fields if value not in (None, []))
        return f"{type(node).__name__}({said})"
    if isinstance(node, list):
        return f"[{','.join(_text(one) for one in node if not _says_nothing(one))}]"
    return ascii(node)


class _Plain:
    """Which definitions of a module surely do nothing but bind a name."""

    def __init__(self, tree: ast.Module, imported: Mapping[str, list[tuple[str, str]]]) -> None:
        self._imported = imported
        self._classes: dict[str, bool] = {}  # by name, whether those before are plain
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self._classes[node.name] = self._class(node) and self._classes.get(node.name, True)

    def binds(self, node: ast.stmt) -> tuple[str, ...]:
        """The names; () where it may do more."""
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names = (name,) if not node.decorator_list and self._function(node) else ()
            case ast.ClassDef(name=name):
                names = (name,) if self._class(node) else ()
            case ast.Assign(targets=targets, value=value) if _is_plain(value):
                named = [target.id for target in targets if isinstance(target, ast.Name)]
                names = tuple(named) if len(named) == len(targets) else ()
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = (name,) if _is_plain(node.value, node.annotation) else ()
            case _:
                names = ()
        return () if any(name.startswith("__") for name in names) else names

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        args = node.args
        every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
        hints = (arg.annotation for arg in every if arg is not None)
        return _is_plain(*args.defaults, *args.kw_defaults, *hints, node.returns)

    def _class(self, node: ast.ClassDef) -> bool:
        if node.decorator_list or node.keywords:
            return False
        return all(map(self._base, node.bases)) and all(map(self._inside, node.body))

    def _base(self, node: ast.expr) -> bool:
        dotted = self._dotted(node)
        if dotted in self._classes:
            return self._classes[dotted]
        return dotted in _PLAIN_BASES or (dotted not in self._imported and isinstance(vars(builtins).get(dotted), type))

    def _dotted(self, node: ast.expr) -> str:
        """The full name of what `torch.nn.Module`, `nn.Module` or `Module` mean; "" for anything else."""
        if isinstance(node, ast.Attribute):
            return f"{self._dotted(node.value)}.{node.attr}"
        name = node.id if isinstance(node, ast.Name) else ""
        known = [f"{dotted}.{what}" if what else dotted for dotted, what in self._imported.get(name, ())]
        return known[0] if known else name

    def _inside(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            plain = all(self._dotted(one) in _PLAIN_DECORATORS for one in node.decorator_list)
            return plain and node.name != "__init_subclass__" and self._function(node)
        return _says_nothing(node) or bool(self.binds(node))


def _is_plain(*nodes: ast.expr | None) -> bool:
    """Whether to evaluate the expressions calls nothing."""
    every = (part for node in nodes if node is not None for part in ast.walk(node))
    return all(isinstance(part, _PLAIN) for part in every)
