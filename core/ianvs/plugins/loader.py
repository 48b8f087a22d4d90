"""Loads a class or function of an author from a file, a module, or an entry point.

Files of the same basename do not conflict: each is imported under a name made from its whole path, and the modules that
it imports from its own folder are removed from sys.modules afterwards, so that another plugin's `model.py` is another
module. A file with relative imports is imported as a module of its package, which has such a name, too.
"""

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.machinery import FileFinder, ModuleSpec
from importlib.metadata import EntryPoint
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from ianvs.base.entry_points import entries, installed, origin_text
from ianvs.base.errors import PluginError, closest, shortened, shown_path
from ianvs.base.method_names import ALIASES, carried
from ianvs.base.package import PACKAGE
from ianvs.plugins.authors_files import MODULES, STORED, add_folders, is_source, package_spec, source_spec
from ianvs.plugins.local_imports import package_and_folders
from ianvs.plugins.missing_modules import UNIQUE, how_to_install, how_to_name
from ianvs.plugins.mode_switch import separate_mode_switch
from ianvs.plugins.registration import ALIASES as REGISTERED
from ianvs.plugins.registration import sedna_stub

ENTRY_POINTS = "ianvs.algorithms"
_FEW = 12  # maximum number of names in a message

T = TypeVar("T")


@dataclass
class Loaded:
    """An object of an author, with the import context that its code needs."""

    target: Any
    folders: tuple[Path, ...] = ()  # first on sys.path while the code runs
    _own_modules: dict[str, ModuleType] = field(default_factory=dict, repr=False)
    _rivals: tuple[str, ...] = ()  # other modules with the name of a module in `folders`

    @contextmanager
    def active(self) -> Iterator[Any]:
        """Context manager for running the author's code: lazy imports from its folders work, and don't affect other
        plugins.

        Inside, `folders` are first on sys.path; modules imported from them are removed from sys.modules afterwards.
        """
        if not self.folders:
            yield self.target
            return
        modules = self._own_modules
        hidden = {name: sys.modules.pop(name) for name in (*modules, *self._rivals) if name in sys.modules}
        sys.modules.update(modules)
        sys.path[:0] = map(str, self.folders)
        count = len(sys.modules)
        try:
            yield self.target
        finally:
            for folder in self.folders:
                sys.path.remove(str(folder))
            # New imports are at the end; comparing all names, some thousand, would slow down every call.
            more = tuple(islice(reversed(sys.modules), max(0, len(sys.modules) - count)))
            for name in modules:
                modules[name] = sys.modules.pop(name, modules[name])
            for name in more:
                module = sys.modules.get(name)
                origin = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
                if not origin or "site-packages" in origin:
                    continue
                if any(map(Path(origin).resolve().is_relative_to, self.folders)):
                    modules[name] = sys.modules.pop(name)
            sys.modules.update(hidden)


def load(url: str | None, name: str, group: str = ENTRY_POINTS) -> Loaded:
    """Return the object called `name` (or registered under that alias) at `url`.

    url: path of a python file, "package.module", "package.module:Class", or None for an installed entry point of
    `group`. Raises PluginError with the line of the author's file where that is known.
    """
    if url is None:
        return _from_entry_point(name, group)
    if url.endswith(".py"):
        path = Path(url).resolve()
        file = _imported(path)
        return replace(file, target=_pick(file.target, name, shown_path(path)))
    module_name, _, attribute = url.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        of_url = missing is not None and f"{module_name}.".startswith(f"{missing}.")
        why = f"{error}. {how_to_name(module_name)}." if of_url else cause(error, None)
        raise PluginError(f"module '{module_name}' can't be imported: {why}", code="unloadable-plugin") from error
    return Loaded(_pick(module, attribute or name, module_name))


def load_once(url: str | None, name: str, group: str = ENTRY_POINTS) -> Loaded:
    """Load an object as `load` does, for a process that only inspects authors' code: each file is imported once."""
    if url is None or not url.endswith(".py") or not Path(url).is_file():
        return load(url, name, group)
    path = Path(url).resolve()
    file = _imported_at(path, path.stat().st_mtime_ns)
    if isinstance(file, str):
        raise PluginError(file, code="unloadable-plugin")
    return replace(file, target=_pick(file.target, name, shown_path(path)))


@cache
def _imported_at(path: Path, mtime_ns: int) -> Loaded | str:
    """Return the file's module, or why it can't be imported."""
    try:
        return _imported(path)
    except PluginError as error:
        return str(error)


def load_object(url: str | None, name: str, group: str = ENTRY_POINTS) -> Any:
    """Return the bare object of `load`, for functions that import nothing lazily."""
    return load(url, name, group).target


def reference_of(url: str | None, name: str, target: object) -> tuple[str | None, str]:
    """Return (url, name) of the class that `target`, the plugin `name` at `url`, names as its `reference`.

    Else of itself.

    It is given as "package.module:Class", as "file.py:Class" with a path from the plugin's folder, or as "Class" in the
    plugin's own file. Raises PluginError for anything else.
    """
    reference = getattr(target, "reference", None)
    if reference is None:
        return url, name
    if not isinstance(reference, str) or not reference.rpartition(":")[2]:
        raise PluginError(
            f'{name}.reference is {reference!r}; it names a class: "package.module:Class".', code="unloadable-plugin"
        )
    place, _, class_name = reference.rpartition(":")
    if place.endswith(".py") and url is not None and url.endswith(".py"):
        place = str(Path(url).parent / place)
    return place or url, class_name


def load_entry_points(group: str, kind: type[T]) -> tuple[tuple[tuple[T, EntryPoint], ...], tuple[str, ...]]:
    """Return each `kind` in the tuples that entry points of `group` name, in their order.

    And sentences on invalid ones.

    An entry point that can't be imported, or is no such tuple, does not affect the others.
    """
    provided: list[tuple[T, EntryPoint]] = []
    unusable = []
    for point in entries(group):
        things = load_entry_point(point, kind)  # type: ignore[arg-type]  # mypy confuses a class's __hash__
        if isinstance(things, str):
            unusable.append(things)
        else:
            provided += [(thing, point) for thing in things]
    return tuple(provided), tuple(unusable)


@lru_cache(maxsize=128)
def load_entry_point(point: EntryPoint, kind: type) -> tuple[Any, ...] | str:
    """Return the tuple of `kind` that an entry point names, or a sentence on why it can't be used."""
    try:
        things: object = point.load()
    except Exception as error:
        return f"{origin_text(point)} can't be imported: {cause(error, None)}."
    if isinstance(things, tuple) and all(isinstance(thing, kind) for thing in things):
        return things
    return f"{origin_text(point)} is no tuple of {kind.__name__}."


def _from_entry_point(name: str, group: str) -> Loaded:
    points = installed(group)
    kind = group.rpartition(".")[2].removesuffix("s")
    if name not in points:
        of_kinds = [key for key, _ in carried()] if group == ENTRY_POINTS else []
        short = [key.partition(".")[2] for key in of_kinds]
        several = [key for key, end in zip(of_kinds, short, strict=True) if end == name]
        names = [*(ALIASES if group == ENTRY_POINTS else ()), *short, *points]
        hint = f" There are {' and '.join(several)}." if several else closest(name, names)
        listed = f"There are: {', '.join(sorted(points))}." if points else "None is installed."
        if len(points) > _FEW:
            listed = f"`ianvs list {kind}s` shows all."
        raise PluginError(
            f"'{name}' is not a built-in {kind}.{hint} {listed} One of your own needs the `url` of its file.",
            code="unloadable-plugin",
        )
    try:
        loaded = Loaded(points[name].load())
        separate_mode_switch(loaded.target)
        return loaded
    except Exception as error:
        where = points[name].value
        raise PluginError(
            f"the installed {kind} '{name}', {where}, can't be imported: {cause(error, None)}", code="unloadable-plugin"
        ) from error


def _imported(path: Path) -> Loaded:
    unique = f"{UNIQUE}{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = source_spec(f"{unique}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{shown_path(path)} is not a python file that can be read.", code="unloadable-plugin")
    package, folders = package_and_folders(path)
    # In a fork, iterating over thousands of names copies their pages: a third of a case's own cost.
    looked_in = any(str(folder) in sys.path_importer_cache for folder in folders)
    for place, finder in list(sys.path_importer_cache.items()) if looked_in else ():
        if place.startswith(tuple(map(str, folders))):  # the file may have been written just now
            if isinstance(finder, FileFinder):
                finder.invalidate_caches()
            elif finder is None:
                del sys.path_importer_cache[place]
    add_folders(*folders)
    # Registered under its unique name so that dataclasses, pickle and inspect find the module of a class.
    name = spec.name if package is None else _name_inside(package, path, unique)
    if any(before in sys.modules for before in (spec.name, name, name.partition(".")[0])):
        for before in [each for each in sys.modules if each.startswith(unique)]:
            del sys.modules[before]
    loaded = Loaded(None, folders, _rivals=_rivals(folders))
    with loaded.active(), sedna_stub():
        try:
            if package is None:
                loaded.target = _executed(spec)
            else:
                loaded.target = _executed_inside(package, name, path)
        except Exception as error:
            sys.modules.pop(name, None)
            raise PluginError(f"{cause(error, path)}", code="unloadable-plugin") from error
    sys.modules[name] = loaded.target
    loaded._own_modules.pop(name, None)
    return loaded


def _executed(spec: ModuleSpec) -> ModuleType:
    """Return the module, imported under the name of its spec."""
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if spec.loader is not None:  # else a package without __init__.py
        spec.loader.exec_module(module)
    return module


def _name_inside(package: Path, path: Path, unique: str) -> str:
    """Return the dotted name of an author's file as a module of its package, whose name begins with `unique`."""
    inside = path.relative_to(package)
    return ".".join((f"{unique}_{_identifier(package.name)}", *inside.parts[:-1], _identifier(path.stem)))


def _identifier(name: str) -> str:
    return name.replace(".", "_")


def _executed_inside(package: Path, name: str, path: Path) -> ModuleType:
    """Return the file as the module `name` of its package, unless the package has imported it itself."""
    top, *_ = name.split(".")
    _executed(package_spec(top, package))
    importlib.import_module(name.rpartition(".")[0])
    spec = None if name in sys.modules else source_spec(name, path)
    return sys.modules[name] if spec is None else _executed(spec)


def place_for_others(module: str) -> None:
    """Link an author's file, imported as `module`, where spawned processes find it under the same name.

    For a module in a package this is the package. Does nothing outside of `imports_from`, and for modules that they can
    import anyway.
    """
    top, *inner = module.split(".")
    file = Path(tempfile.gettempdir(), MODULES, f"{top}.py")
    if not module.startswith(UNIQUE) or str(file.parent) not in sys.path or file.exists():
        return
    file.parent.mkdir(exist_ok=True)
    source, path = Path(str(sys.modules[module].__file__)), ""
    if inner:
        source = source.parents[len(inner) - 1] / "__init__.py"
        path = f"__path__ = [{str(source.parent)!r}]\n"
    with suppress(OSError):  # it was deleted after its import
        absent = bool(inner) and not source.is_file()
        content = STORED.get(os.path.realpath(source)) or (b"" if absent else source.read_bytes())
        file.write_text(f"{path}__file__ = {str(source)!r}\nexec(compile({content!r}, __file__, 'exec'))\n")


def _rivals(folders: tuple[Path, ...]) -> tuple[str, ...]:
    """Return modules imported from elsewhere that would be used in place of an author's own `utils.py` or `models/`.

    Modules of Python and ianvs keep their names.
    """
    listed: set[str] = set()
    for folder in folders:
        with suppress(OSError):
            listed.update(name.removesuffix(".py") for name in os.listdir(folder))  # noqa: PTH208 - as strings
        above = os.path.realpath(folder) + os.sep  # planned files count, too, even if they were deleted since
        inside = (path.removeprefix(above) for path in STORED if path.startswith(above))
        listed.update(name.partition(os.sep)[0].removesuffix(".py") for name in inside)
    # These are looked up in sys.modules: iterating over thousands would copy their pages after a fork.
    tops = {name for name in listed if name in sys.modules} - {*sys.stdlib_module_names, PACKAGE.name}
    places = [(folder / f"{name}.py", folder / name / "__init__.py", name) for name in tops for folder in folders]
    local_names = {name for module, package, name in places if is_source(module) or is_source(package)}
    return tuple(
        name
        for name, module in (list(sys.modules.items()) if local_names else ())
        if name.partition(".")[0] in local_names
        and not any(map(Path(getattr(module, "__file__", None) or folders[0]).resolve().is_relative_to, folders))
    )


def _pick(module: ModuleType, name: str, where: str) -> Any:
    namespace = vars(module)
    registered: dict[str, object] = {}
    for value in namespace.values():
        for alias in getattr(value, "__dict__", {}).get(REGISTERED, ()):
            registered.setdefault(alias, value)
    target = registered.get(name, namespace.get(name))
    if target is None:
        defined = [key for key, value in namespace.items() if getattr(value, "__module__", None) == module.__name__]
        raise PluginError(no_such_name(where, name, [*defined, *registered]), code="unloadable-plugin")
    separate_mode_switch(target)
    return target


def no_such_name(where: str, name: str, defined: Sequence[str]) -> str:
    """Return the message for a file without the object that a plugin's name means. defined: what it has."""
    listed = f" It defines: {', '.join(dict.fromkeys(defined))}." if defined else " It defines no class or function."
    return f"{where} has no '{name}'.{closest(name, defined)}{listed}"


def cause(error: BaseException, path: Path | None) -> str:
    """Return one line: the place in the author's code, the error and its message."""
    message = shortened(f"{type(error).__name__}: {_PRIVATE_NAMES.sub('', str(error))}")
    if isinstance(error, SyntaxError):
        return f"{shown_path(error.filename or path or '?')}:{error.lineno}:{error.offset}: SyntaxError: {error.msg}"
    if isinstance(error, ModuleNotFoundError) and error.name:
        message = f"{message}. {how_to_install(error.name)}"
    if path is None:
        return message
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path]
    place = f"{shown_path(path)}:{lines[-1]}" if lines else shown_path(path)
    return f"{place}: {message}"


_PRIVATE_NAMES = re.compile(rf"\b{UNIQUE}\w+\.(?=\w)")
