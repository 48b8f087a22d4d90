"""Delayed import of packages that a library imports but rarely uses.

Each copy that predicts is a new process, which imports the library again: without this, Avalanche takes 12 CPU seconds,
ten of them for loggers, plots and networks that an exam does not use. It runs in interpreters that have no ianvs.
"""

import importlib
import importlib.abc
import importlib.util
import sys
from types import ModuleType


class ImportedLater(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Within this context, `names` and modules inside of them are empty unless they were imported before.

    Objects taken from them are imported when they are called, derived from, compared with or asked for an attribute.
    Code that imports them afterwards gets the real modules.
    """

    def __init__(self, *names):
        self._names, self._empty = tuple(f"{name}." for name in names), []

    def __enter__(self):
        sys.meta_path.insert(0, self)

    def __exit__(self, *_):
        self.end()

    def end(self):
        """End the context, also when a real import happens within it, whose own imports are real ones."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for module in self._empty:
            if sys.modules.get(module.__name__) is module:
                del sys.modules[module.__name__]

    def find_spec(self, name, path, target=None):
        if not f"{name}.".startswith(self._names):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        self._empty.append(_Empty(spec.name))
        return self._empty[-1]

    def exec_module(self, module):
        module._finder = self


class _Empty(ModuleType):
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _Named(self, name)


class _Named:
    """A placeholder for `name` in a module that was not imported."""

    def __init__(self, module, name):
        self._module, self._name = module, name

    def _itself(self):
        self._module._finder.end()
        module = importlib.import_module(self._module.__name__)
        if hasattr(module, self._name):
            return getattr(module, self._name)
        return importlib.import_module(f"{module.__name__}.{self._name}")

    def __call__(self, *arguments, **named):
        return self._itself()(*arguments, **named)

    def __getattr__(self, name):
        if name.startswith("__"):  # attributes that code expects of types in annotations
            raise AttributeError(name)
        return getattr(self._itself(), name)

    def __instancecheck__(self, instance):
        return isinstance(instance, self._itself())

    def __subclasscheck__(self, kind):
        return issubclass(kind, self._itself())

    def __mro_entries__(self, bases):
        return (self._itself(),)
