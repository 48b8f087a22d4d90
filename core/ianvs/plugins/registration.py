"""`ClassFactory.register`, the decorator of plugins written for Ianvs. It stores the alias on the object.

Ianvs keeps one process-wide table in which a second class of the same alias silently replaces the first. Here the alias
is stored on the object itself, and the loader searches it in the module that the yaml names.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import TypeVar

_T = TypeVar("_T")
ALIASES = "__ianvs_aliases__"


class ClassType:
    """Types of registrations in Sedna and Ianvs; plain strings. The spelling of MTL is Sedna's."""

    GENERAL = "general"
    HEM = "hard_example_mining"
    FL_AGG = "aggregation"
    MTL = "multi_task_learening"
    UTD = "unseen_task_detect"
    OF = "optical_flow"
    ALGORITHM = "algorithm"
    DATASET = "data_process"
    CALLBACK = "post_process_callback"
    UTP = "unseen_task_processing"
    KM = "knowledge_management"
    STP = "seen_task_processing"


class ClassFactory:
    """Accepts registrations in Ianvs's form."""

    @classmethod
    def register(cls, type_name: str = ClassType.GENERAL, alias: str | None = None) -> Callable[[_T], _T]:
        """Decorate a class or function so that the yaml may call it `alias`."""

        def mark(target: _T) -> _T:
            name = alias or getattr(target, "__name__", str(target))
            # A subclass inherits its base's mark; its own list must not grow the base's.
            setattr(target, ALIASES, (*vars(target).get(ALIASES, ()), name))
            return target

        return mark


@contextmanager
def sedna_stub() -> Iterator[None]:
    """Context manager for importing a plugin: `from sedna.common.class_factory import ClassFactory` works without
    sedna.
    """
    if "sedna" in sys.modules or find_spec("sedna") is not None:
        yield
        return
    names = ("sedna", "sedna.common", "sedna.common.class_factory")
    modules = {name: ModuleType(name) for name in names}
    for name in names[:2]:
        modules[name].__path__ = []
    factory = modules["sedna.common.class_factory"]
    vars(factory).update(ClassFactory=ClassFactory, ClassType=ClassType)
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in names:
            sys.modules.pop(name, None)
