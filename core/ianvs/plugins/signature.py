"""What a plugin's constructor and methods take, found from their signatures before anything runs."""

import dis
import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType, SimpleNamespace
from typing import TypeVar

from ianvs.base.errors import closest

F = TypeVar("F", bound=Callable[..., object])

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
"""Kinds of parameters that may be given by name."""


@dataclass(frozen=True)
class Parameters:
    """What a constructor takes. `open` says that any other name is taken as well (a bare **kwargs).

    defaults: of those that are optional. types: annotations by name, as far as they can be resolved.
    """

    required: Sequence[str]
    defaults: Mapping[str, object]
    open: bool
    types: Mapping[str, object]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.required, *self.defaults)


_SHORT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("lr", "eta"), ("learning_rate",)),
        "learning_rate": ("lr",),
        **dict.fromkeys(("bs", "batch", "train_mb_size", "minibatch_size"), ("batch_size",)),
        **dict.fromkeys(("n_epochs", "num_epochs", "max_epochs", "train_epochs"), ("epochs",)),
        "wd": ("weight_decay",),
        **dict.fromkeys(("mem_size", "memory_size", "buffer_size", "memory", "buffer"), ("capacity", "memory_total")),
        "mom": ("momentum",),
        **dict.fromkeys(("optim", "opt"), ("optimizer",)),
        **dict.fromkeys(("backbone", "model", "arch"), ("network",)),
    }
)
"""What other libraries call hyperparameters, and what ours may be."""


def misnamed(owner: str, noun: str, takes: Parameters, given: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, what is wrong with it): arguments that `owner` does not take, and those that it needs and does not
    get.
    """
    listed = f"It takes: {', '.join(takes.names)}." if takes.names else "It takes none."
    for name in given:
        if not takes.open and name not in takes.names:
            meant = next((candidate for candidate in _SHORT.get(name.casefold(), ()) if candidate in takes.names), name)
            yield name, f"{owner} has no {noun} '{name}'.{closest(meant, takes.names)} {listed}"
    for name in takes.required:
        if name not in given:
            yield name, f"{owner} needs the {noun} '{name}', which the file does not give."


def constructor_parameters(target: Callable[..., object]) -> Parameters:
    """Follows `**kwargs` up the classes: `EWC(strength, **training)` takes what its base class takes as well.

    A constructor that passes its `**kwargs` to nobody takes any name.
    """
    by_name: dict[str, inspect.Parameter] = {}
    types: dict[str, object] = {}
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
            elif parameter.kind in BY_NAME and parameter.name not in by_name:
                by_name[parameter.name] = parameter
                if parameter.annotation is not parameter.empty:
                    types |= _resolved(parameter.name, parameter.annotation, init)
        if not open_ or not _passes_arguments_on(init):
            break
    required = [name for name, parameter in by_name.items() if parameter.default is parameter.empty]
    defaults = {name: parameter.default for name, parameter in by_name.items() if name not in required}
    return Parameters(required, defaults, open_, types)


def _passes_arguments_on(function: Callable[..., object]) -> bool:
    """Return whether it calls something with `**`; one that does not reads its own `**kwargs`, whatever names they
    have.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is None or any(step.opname == "CALL_FUNCTION_EX" for step in dis.get_instructions(code))


def _resolved(name: str, annotation: object, function: Callable[..., object]) -> dict[str, object]:
    """{name: type}; {} for an annotation whose names are not there when the program runs."""
    holder = SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(holder, getattr(inspect.unwrap(function), "__globals__", {}), include_extras=True)
    except Exception:  # whatever the author's expression raises
        return {}


@dataclass(frozen=True, slots=True)
class LazyArgument:
    """A value that is made when it is asked for."""

    make: Callable[[], object]


def leaves(*names: str) -> Callable[[F], F]:
    """Of a method with a catch-all: it has no use for these, so that nothing has to be made for it."""

    def marked(function: F) -> F:
        function.leaves = frozenset(names)  # type: ignore[attr-defined]
        return function

    return marked


def named_arguments(function: Callable[..., object], offered: Mapping[str, object]) -> dict[str, object]:
    """Those of `offered` that `function` names; if it has a catch-all, whatever that is called, all but what it leaves.

    Those that come late are made.
    """
    named, left = _named(getattr(function, "__func__", function))
    return {
        name: value.make() if type(value) is LazyArgument else value
        for name, value in offered.items()
        if (name not in left if named is None else name in named)
    }


@lru_cache(256)  # asked for every piece of a stream
def _named(function: Callable[..., object]) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return (what it names; None: it has a catch-all, what that leaves)."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None, getattr(function, "leaves", frozenset())
    return frozenset(p.name for p in parameters if p.kind in BY_NAME), frozenset()
