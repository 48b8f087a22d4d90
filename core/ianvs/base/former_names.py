"""Former names of attributes, methods and arguments: they keep working for one release, with a DeprecationWarning."""

import functools
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar

__all__ = ["former_arguments", "former_module_names", "former_names", "names_of_today"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_NAMES = "__former_names__"


class _FormerName:
    """Descriptor that forwards access to the attribute with the new name, with a warning."""

    def __init__(self, owner: type, former: str, name: str) -> None:
        self._owner, self._former, self._name = owner, former, name

    def __get__(self, instance: object, owner: type) -> Any:
        _warn(self._owner, self._former, self._name, 3)
        nearest = next(vars(base)[self._former] for base in owner.__mro__ if self._former in vars(base))
        if nearest is self:
            return getattr(owner if instance is None else instance, self._name)
        # An override under the former name calls super().
        inherited = next(vars(base)[self._name] for base in self._owner.__mro__ if self._name in vars(base))
        return inherited.__get__(instance, owner)

    def __set__(self, instance: object, value: object) -> None:
        _warn(self._owner, self._former, self._name, 3)
        setattr(instance, self._name, value)


def former_names(**names: str) -> Callable[[type[T]], type[T]]:
    """Class decorator for renamed attributes, methods and arguments, given as former="name".

    Instances and the class still have the former attribute; a subclass may still override a method under its former
    name; a dataclass still takes the former argument; and `as_record` still reads the former field of a stored file.
    """

    def decorate(cls: type[T]) -> type[T]:
        setattr(cls, _NAMES, {**names_of_today(cls), **names})
        for former, name in names.items():
            setattr(cls, former, _FormerName(cls, former, name))
        if is_dataclass(cls):
            target: Any = cls
            target.__init__ = _accept_former_arguments(target.__init__, names, cls.__name__)
        else:
            _accept_former_overrides(cls, names)
        return cls

    return decorate


def former_arguments(**names: str) -> Callable[[F], F]:
    """Decorator for a function or method with renamed keyword arguments, given as former="name"."""

    def decorate(function: F) -> F:
        return _accept_former_arguments(function, names, function.__qualname__)

    return decorate


def former_module_names(module: str, **names: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module with renamed members, given as Former="Name"."""

    def find(former: str) -> Any:
        if former not in names:
            raise AttributeError(f"module {module!r} has no attribute {former!r}")
        _warn_former(f"{module}.{former}", names[former], 3)
        return getattr(sys.modules[module], names[former])

    return find


def names_of_today(cls: type) -> Mapping[str, str]:
    """Return the mapping from former to present names of a class's attributes."""
    names: Mapping[str, str] = getattr(cls, _NAMES, {})
    return names


def _accept_former_arguments(function: F, names: Mapping[str, str], owner: str) -> F:
    @functools.wraps(function)
    def accept(*args: Any, **given: Any) -> Any:
        for former, name in names.items():
            if former in given:
                _warn_former(f"{owner}.{former}", name, 3)
                given[name] = given.pop(former)
        return function(*args, **given)

    return accept  # type: ignore[return-value]


def _accept_former_overrides(cls: Any, names: Mapping[str, str]) -> None:
    def accept(subclass: Any, /, **options: Any) -> None:
        super(cls, subclass).__init_subclass__(**options)
        for former in names.keys() & vars(subclass).keys():
            _warn(subclass, former, names[former], 3)
            setattr(subclass, names[former], vars(subclass)[former])

    cls.__init_subclass__ = classmethod(accept)


def _warn(cls: type, former: str, name: str, level: int) -> None:
    _warn_former(f"{cls.__name__}.{former}", name, level + 1)


def _warn_former(former: str, name: str, level: int) -> None:
    message = f"{former} is now called {name}; the former name will be removed in the next release."
    warnings.warn(message, DeprecationWarning, stacklevel=level)
