"""Imports files of modules and metrics as KubeEdge Ianvs does: by basename, with the file's folder on sys.path."""

import hashlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from ianvs.base.entry_points import installed
from ianvs.base.errors import PluginError, closest, shown_path
from ianvs.config.spec import MetricSpec
from ianvs.kubeedge.calls import errors_in
from ianvs.kubeedge.provide import provide
from ianvs.kubeedge.provided.class_factory import ClassFactory, ClassType
from ianvs.kubeedge.work import Module, Work
from ianvs.kubeedge.yaml.file_models import MULTI_INFERENCE_MODULES, SCHEME, SCHEMES
from ianvs.kubeedge.yaml.settings import ModelMetric
from ianvs.plugins.authors_files import source_spec
from ianvs.plugins.loader import cause

_REGISTERED_HERE = "__ianvs_registered__"  # attribute of an imported module: its registrations by (type, alias)

# The registry's type for each type of module.
_CLASS_TYPES = {
    **dict.fromkeys(("basemodel", "edgemodel", "cloudmodel", "drafter", "verifier"), ClassType.GENERAL),
    **dict.fromkeys(("dataset_processor", SCHEME), ClassType.GENERAL),
    **dict.fromkeys(("task_definition", "task_relationship_discovery", *MULTI_INFERENCE_MODULES), ClassType.STP),
    "hard_example_mining": ClassType.HEM,
    "task_update_decision": ClassType.KM,
    "unseen_task_allocation": ClassType.UTP,
    "unseen_sample_recognition": ClassType.UTD,
    "unseen_sample_re_recognition": ClassType.UTD,
    "aggregation": ClassType.FL_AGG,
}


def prepare(work: Work) -> None:
    """Set up the process of a case: the provided modules, the working directory, and sys.path.

    The folders of modules stay on sys.path, the first module's first, for imports within methods and for metrics.
    """
    provide()
    sys.dont_write_bytecode = True  # no files in the user's folders
    folder = Path(work.cwd or work.folder)
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    folders = [
        str(_absolute_path(module.url).parent) for module in work.modules if module.url and Path(module.url).exists()
    ]
    sys.path[:] = list(dict.fromkeys([*folders, *([work.cwd] if work.cwd else []), *sys.path, str(folder)]))
    importlib.invalidate_caches()


def _absolute_path(url: str) -> Path:
    return Path(os.path.abspath(url))  # noqa: PTH100 - links are not followed, as in Python's own imports


@contextmanager
def _folder_first_on_path(folder: Path) -> Iterator[None]:
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.path += [entry for entry in before if entry not in sys.path]


def import_file(url: str) -> ModuleType:
    """Import a file, or the package in a folder, under its basename up to the first dot.

    A url that is not a path may be the dotted name of a module below sys.path, as in one example of Ianvs.
    A loaded module of the same name is hidden during the import and restored afterwards. Raises PluginError with the
    line that failed.
    """
    path = _absolute_path(url)
    if not path.exists() and all(part.isidentifier() for part in url.split(".")) and not url.endswith(".py"):
        with errors_in(f"import of {url}"):
            return importlib.import_module(url)
    name = path.name.split(".")[0]
    unique = f"ianvs_module_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}_{name}"
    if unique in sys.modules:
        return sys.modules[unique]
    source = path / "__init__.py" if path.is_dir() else path
    if not source.is_file():
        reason = "has no __init__.py" if path.is_dir() else "does not exist"
        raise PluginError(f"{shown_path(path)} {reason}.", code="missing-file")
    existing_module = sys.modules.get(name)
    if existing_module is not None and getattr(existing_module, "__file__", None) == str(source):
        sys.modules[unique] = existing_module  # a sibling has imported it
        return existing_module
    search = [str(path)] if path.is_dir() else None
    spec = source_spec(name, source, search)
    if spec is None or spec.loader is None:
        raise PluginError(
            f"{shown_path(source)} is not a Python file: its name has to end in .py.", code="wrong-path-type"
        )
    module = importlib.util.module_from_spec(spec)
    before = _registry()
    sys.modules[name] = sys.modules[unique] = module
    try:
        with errors_in(f"import of {shown_path(source)}", source), _folder_first_on_path(path.parent):
            _execute_module(spec.loader, module, source)
    except BaseException:
        for module_name in (name, unique):
            sys.modules.pop(module_name, None)
        raise
    finally:
        if existing_module is not None:
            sys.modules[name] = existing_module
    if existing_module is not None:
        _rename_members(module, name, unique)
    module.__dict__[_REGISTERED_HERE] = {
        key: registered_object
        for key, registered_object in _registry().items()
        if before.get(key) is not registered_object
    }
    return module


def _execute_module(loader: Loader, module: ModuleType, source: Path) -> None:
    try:
        loader.exec_module(module)
    except ModuleNotFoundError as error:
        package = str(error.name or "").partition(".")[0]
        if package in ("", "sedna", "core"):
            raise
        raise PluginError(f"{cause(error, source)}, or its folder on PYTHONPATH.", code="missing-package") from error


def _registry() -> dict[tuple[str, str], Any]:
    return {
        (kind, name): registered_object
        for kind, names in ClassFactory.__registry__.items()
        for name, registered_object in names.items()
    }


def _rename_members(module: ModuleType, name: str, unique: str) -> None:
    """Set the unique name in the module's classes and functions, so that pickle finds them."""
    module.__name__ = unique
    for member in vars(module).values():
        if getattr(member, "__module__", None) == name:
            member.__module__ = unique


def import_modules(work: Work) -> None:
    for package in work.algorithm.third_party_packages:
        with errors_in(f"third_party_packages '{package.name}'"):
            import_file(str(package.url or ""))
    for module in work.modules:
        if module.url:
            import_file(module.url)


def registered(module: Module) -> Callable[..., Any]:
    """Return the class or function that a module names. Raises PluginError if its file does not register it."""
    if module.type == SCHEME and not module.url and (point := installed(SCHEMES).get(module.name)) is not None:
        return cast("Callable[..., Any]", point.load())
    return _lookup(_CLASS_TYPES[module.type], module.name, module.url)


def _lookup(kind: str, name: str, url: str | None) -> Callable[..., Any]:
    # This file's registration counts, even if another file has registered the same name since.
    of_file: dict[tuple[str, str], Callable[..., Any]] = vars(import_file(url)).get(_REGISTERED_HERE, {}) if url else {}
    if (kind, name) in of_file:
        return of_file[kind, name]
    if ClassFactory.is_exists(kind, name):
        return ClassFactory.get_cls(kind, name)
    others = [other for other in vars(ClassType).values() if isinstance(other, str)]
    elsewhere = [other for other in others if other != kind and ClassFactory.is_exists(other, name)]
    names = sorted(ClassFactory.__registry__.get(kind, {}))
    hint = f" It is registered as '{elsewhere[0]}'." if elsewhere else closest(name, names)
    listed = f" Registered as '{kind}': {', '.join(names)}." if names else f" Nothing is registered as '{kind}'."
    problem = f"{shown_path(url)} does not register '{name}'" if url else f"without a url, nothing registers '{name}'"
    raise PluginError(f"{problem} as '{kind}'.{hint}{listed}", code="unregistered-name")


def load_metric(metric: MetricSpec | ModelMetric) -> Callable[..., Any]:
    """Return the function of a metric with a url. Raises PluginError if its file can't be imported or lacks it."""
    if not metric.url:
        raise PluginError(
            f"the metric '{metric.name}' needs a url: it is not built in.",
            code="unknown-metric",
        )
    return _lookup(ClassType.GENERAL, metric.name, str(metric.url))
