"""Puts the provided `sedna` and `core.common` in front of everything, for the whole life of a case's process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_HERE = "ianvs.kubeedge.provided"


@dataclass(frozen=True)
class _Provided:
    """A module to provide.

    source: one of ours. names: {name: what has it in `source`}; None: it has all of `__all__`. package: it has others
    below it.
    """

    source: str = ""
    names: Mapping[str, str] | None = None
    package: bool = False


_FOLDER = _Provided(package=True)

PROVIDED: dict[str, _Provided] = {
    "sedna": _FOLDER,
    "sedna.common": _FOLDER,
    "sedna.common.class_factory": _Provided("class_factory"),
    "sedna.common.config": _Provided("config"),
    "sedna.common.file_ops": _Provided("file_ops"),
    "sedna.common.log": _Provided("log", {"LOGGER": "SEDNA_LOGGER"}),
    "sedna.common.utils": _Provided("utils", {"get_host_ip": "get_host_ip"}),
    "sedna.datasources": _Provided("datasources"),
    "sedna.algorithms": _FOLDER,
    "sedna.algorithms.aggregation.aggregation": _Provided("aggregation"),
    "sedna.algorithms.aggregation": _Provided("aggregation", package=True),
    "sedna.algorithms.hard_example_mining": _Provided("hard_examples"),
    "sedna.algorithms.seen_task_learning": _FOLDER,
    "sedna.algorithms.seen_task_learning.artifact": _Provided("artifact"),
    "core": _FOLDER,
    "core.common": _FOLDER,
    "core.common.log": _Provided("log", {"LOGGER": "CORE_LOGGER"}),
    "core.common.constant": _Provided("constant"),
    "core.common.utils": _Provided("utils"),
}


def provide() -> None:
    """Let `import sedna...` and `import core.common...` find what is provided, whatever is installed.

    To be called in the process of a case or of its metrics, before the first import of a plugin; never elsewhere.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    for name in list(sys.modules):
        if name.partition(".")[0] in ("sedna", "core"):
            del sys.modules[name]
    sys.meta_path.insert(0, _Finder())
    for source in ("aggregation", "hard_examples"):  # they register the built-ins
        importlib.import_module(f"{_HERE}.{source}")


def _refusal(name: str) -> str:
    return f"'{name}' is not provided: ianvs has what plugins of a job need of sedna and core.common, and no more."


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, *rest = fullname.split(".")
        if top not in ("sedna", "core"):
            return None
        provided = PROVIDED.get(fullname)
        if provided is not None:
            return ModuleSpec(fullname, _Loader(provided), is_package=provided.package)
        # A plugin may have a package `core` of its own: what lies in that is found, below the names provided.
        if top == "core" and rest[0] != "common":
            own = [str(folder) for entry in sys.path if (folder := Path(entry or ".", "core", *rest[:-1])).is_dir()]
            spec = PathFinder.find_spec(fullname, own)
            if spec is not None:
                return spec
        raise ModuleNotFoundError(_refusal(fullname), name=fullname)


class _Loader(Loader):
    def __init__(self, provided: _Provided) -> None:
        self.provided = provided

    def exec_module(self, module: ModuleType) -> None:
        names = self.provided.names or {}
        if self.provided.source:
            source = importlib.import_module(f"{_HERE}.{self.provided.source}")
            module.__file__ = source.__file__
            module.__doc__ = source.__doc__
            names = names or {name: name for name in source.__all__}
            for name, ours in names.items():
                thing = getattr(source, ours)
                setattr(module, name, thing)
                # Pickles name a class by its module: what is stored here can be read with a real sedna and the reverse.
                if isinstance(thing, type) and thing.__module__ == source.__name__:
                    thing.__module__ = module.__name__
        module.__dict__["__all__"] = list(names)
        module.__dict__["__getattr__"] = _absent(module.__name__)


# Names of sedna that only scripts use which are started by hand. Others raise AttributeError, as they should: pickle
# and inspect ask every module for any name.
_SCRIPTS_ONLY = frozenset({"IndexDataParse", "LifelongLearning", "FederatedLearning", "AggregationServer", "MistNet"})


def _absent(module: str) -> object:
    def __getattr__(name: str) -> object:  # noqa: N807 - Python asks for this name
        if name in _SCRIPTS_ONLY:
            raise ImportError(_refusal(f"{module}.{name}"))
        raise AttributeError(f"module '{module}' has no '{name}': {_refusal(f'{module}.{name}')}")

    return __getattr__
