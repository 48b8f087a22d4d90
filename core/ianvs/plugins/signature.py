"""What a plugin's constructor and methods take, found from their signatures before anything runs."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

from ianvs.errors import closest

__all__ = ["Parameters", "constructor_parameters", "misnamed", "named_arguments"]


class Parameters:
    """What a constructor takes. `open` says that any other name is taken as well (a bare **kwargs).

    types: annotations by name, as far as they can be resolved. defaults: of those that are optional.
    """

    def __init__(
        self,
        required: Iterable[str],
        optional: Mapping[str, Any],
        open_: bool,
        types: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.required = tuple(required)
        self.optional = tuple(optional)
        self.defaults = dict(optional)
        self.open = open_
        self.types = dict(types)

    @property
    def names(self) -> tuple[str, ...]:
        return self.required + self.optional


def misnamed(owner: str, noun: str, takes: Parameters, given: Collection[str]) -> Iterator[tuple[str, str]]:
    """(name, what is wrong with it): arguments that `owner` does not take, and those that it needs and does not get."""
    listed = f"It takes: {', '.join(takes.names)}." if takes.names else "It takes none."
    for name in given:
        if not takes.open and name not in takes.names:
            yield name, f"{owner} has no {noun} '{name}'.{closest(name, takes.names)} {listed}"
    for name in takes.required:
        if name not in given:
            yield name, f"{owner} needs the {noun} '{name}', which the file does not give."


def constructor_parameters(target: Callable[..., Any]) -> Parameters:
    """Follows `**kwargs` up the classes: `EWC(strength, **training)` takes what its base class takes as well."""
    required: dict[str, None] = {}
    optional: dict[str, Any] = {}
    types: dict[str, Any] = {}
    layers = inspect.getmro(target) if isinstance(target, type) else (target,)
    open_ = False
    for layer in layers:
        init = layer.__dict__.get("__init__") if isinstance(layer, type) else layer
        if init is None or layer is object:
            continue
        open_ = False
        parameters = list(inspect.signature(init).parameters.values())
        for parameter in parameters[1:] if isinstance(layer, type) else parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                open_ = True
            elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                if parameter.name in required or parameter.name in optional:
                    continue
                if parameter.default is parameter.empty:
                    required[parameter.name] = None
                else:
                    optional[parameter.name] = parameter.default
                if parameter.annotation is not parameter.empty:
                    types |= _resolved(parameter.name, parameter.annotation, init)
        if not open_:
            break
    return Parameters(required, optional, open_, types)


def _resolved(name: str, annotation: Any, function: Any) -> dict[str, Any]:
    """{name: type}; {} for an annotation whose names are not there when the program runs."""
    holder = SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(holder, getattr(inspect.unwrap(function), "__globals__", {}), include_extras=True)
    except Exception:  # whatever the author's expression raises
        return {}


def named_arguments(function: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `offered` that `function` names; all of them when it has a catch-all, whatever that is called."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return dict(offered)
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return {name: value for name, value in offered.items() if name in names}
