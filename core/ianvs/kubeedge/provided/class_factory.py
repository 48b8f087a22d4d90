"""The table in which plugins register their classes and functions, one for each process."""

from collections.abc import Callable
from inspect import isclass, isfunction
from types import ModuleType
from typing import Any, ClassVar, TypeVar

from ianvs.plugins.registration import ClassType

__all__ = ["ClassFactory", "ClassType"]

T = TypeVar("T", bound=Callable[..., Any])


class ClassFactory:
    """Registers classes and functions by kind and alias; the last registration counts."""

    __registry__: ClassVar[dict[str, dict[str, Callable[..., Any]]]] = {}

    @classmethod
    def register(cls, type_name: str = ClassType.GENERAL, alias: str | None = None) -> Callable[[T], T]:
        """Return a decorator that registers a class or function, and returns it unchanged. alias: its own name by
        default.
        """
        return lambda t_cls: cls.register_cls(t_cls, type_name, alias)

    @classmethod
    def register_cls(cls, t_cls: T, type_name: str = ClassType.GENERAL, alias: str | None = None) -> T:
        name = alias if alias is not None else getattr(t_cls, "__name__", type(t_cls).__name__)
        cls.__registry__.setdefault(type_name, {})[name] = t_cls
        return t_cls

    @classmethod
    def register_from_package(cls, package: ModuleType, type_name: str = ClassType.GENERAL) -> None:
        """Register every public class and function of a module under its name."""
        for name in dir(package):
            thing = getattr(package, name)
            if not name.startswith("_") and (isclass(thing) or isfunction(thing)):
                cls.register_cls(thing, type_name)

    @classmethod
    def is_exists(cls, type_name: str, cls_name: str | None = None) -> bool:
        """Return whether `cls_name` is registered as this kind; without a name, whether anything is."""
        kind = cls.__registry__.get(type_name)
        return kind is not None and (cls_name is None or cls_name in kind)

    @classmethod
    def get_cls(cls, type_name: str, t_cls_name: str | None = None) -> Callable[..., Any]:
        """Return a registered object. Raises ValueError if there is none."""
        kind = cls.__registry__.get(type_name, {})
        if t_cls_name not in kind:
            names = ", ".join(sorted(kind)) or "nothing"
            raise ValueError(f"'{t_cls_name}' is not registered as '{type_name}'; registered there: {names}.")
        return kind[t_cls_name]
