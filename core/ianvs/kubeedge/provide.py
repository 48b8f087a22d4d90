"""Makes the provided `sedna` and `core.common` importable before anything else, for the whole life of a case's
process.
"""

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_HERE = "ianvs.kubeedge.provided"

PROVIDED = {
    "sedna": "",
    "sedna.common": "",
    "sedna.common.class_factory": "class_factory",
    "sedna.common.config": "config",
    "sedna.common.file_ops": "file_ops",
    "sedna.common.log": "utils",
    "sedna.common.utils": "utils",
    "sedna.datasources": "datasources",
    "sedna.algorithms": "",
    "sedna.algorithms.aggregation.aggregation": "aggregation",
    "sedna.algorithms.aggregation": "aggregation",
    "sedna.algorithms.hard_example_mining": "hard_examples",
    "sedna.algorithms.seen_task_learning": "",
    "sedna.algorithms.seen_task_learning.artifact": "artifact",
    "core": "",
    "core.common": "",
    "core.common.log": "utils",
    "core.common.constant": "constant",
    "core.common.utils": "utils",
}
"""Our module for each provided module; "" for a package without content."""

_NAMES = {
    "sedna.common.log": {"LOGGER": "SEDNA_LOGGER"},
    "core.common.log": {"LOGGER": "CORE_LOGGER"},
    "sedna.common.utils": {"get_host_ip": "get_host_ip"},
}
"""{name: object in our module}, for modules whose names differ from its `__all__`."""

# Names of sedna that only manually started scripts use. Others raise AttributeError, which pickle and inspect need.
_SCRIPTS_ONLY = frozenset({"IndexDataParse", "LifelongLearning", "FederatedLearning", "AggregationServer", "MistNet"})


def provide() -> None:
    """Make `import sedna...` and `import core.common...` find the provided modules, whatever is installed.

    Call it in the process of a case or of its metrics, before the first import of a plugin; never elsewhere.
    """
    if any(isinstance(finder, _Provider) for finder in sys.meta_path):
        return
    for name in list(sys.modules):
        if name.partition(".")[0] in ("sedna", "core"):
            del sys.modules[name]
    sys.meta_path.insert(0, _Provider())
    for source in ("aggregation", "hard_examples"):  # they register the built-ins
        importlib.import_module(f"{_HERE}.{source}")


def _refusal(name: str) -> str:
    return f"'{name}' is not provided: ianvs has what plugins of a job need of sedna and core.common, and no more."


class _Provider(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, *rest = fullname.split(".")
        if top not in ("sedna", "core"):
            return None
        if fullname in PROVIDED:
            return ModuleSpec(fullname, self, is_package=any(name.startswith(f"{fullname}.") for name in PROVIDED))
        # A plugin may have its own package `core`, whose modules are found after the provided names.
        if top == "core" and rest[0] != "common":
            folders = [str(folder) for entry in sys.path if (folder := Path(entry or ".", "core", *rest[:-1])).is_dir()]
            spec = PathFinder.find_spec(fullname, folders)
            if spec is not None:
                return spec
        raise ModuleNotFoundError(_refusal(fullname), name=fullname)

    def exec_module(self, module: ModuleType) -> None:
        names: dict[str, str] = {}
        if PROVIDED[module.__name__]:
            source = importlib.import_module(f"{_HERE}.{PROVIDED[module.__name__]}")
            module.__file__ = source.__file__
            module.__doc__ = source.__doc__
            names = _NAMES.get(module.__name__) or {name: name for name in source.__all__}
            for name, ours in names.items():
                thing = getattr(source, ours)
                setattr(module, name, thing)
                # Pickles name a class by its module, so they are compatible with the real sedna.
                if isinstance(thing, type) and thing.__module__ == source.__name__:
                    thing.__module__ = module.__name__
        vars(module).update(__all__=list(names), __getattr__=partial(_absent, module.__name__))


def _absent(module: str, name: str) -> object:
    if name in _SCRIPTS_ONLY:
        raise ImportError(_refusal(f"{module}.{name}"))
    raise AttributeError(f"module '{module}' has no '{name}': {_refusal(f'{module}.{name}')}")
