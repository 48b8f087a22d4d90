"""Parameters of a plugin's constructor and methods, from their signatures, before anything runs."""

import dis
import inspect
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType, SimpleNamespace
from typing import TypeVar

from ianvs.base.errors import closest

F = TypeVar("F", bound=Callable[..., object])

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
"""Kinds of parameters that accept a name."""


@dataclass(frozen=True)
class Parameters:
    """Parameters of a constructor.

    Attributes:
        names: Of all parameters, the required ones first.
        defaults: Of optional parameters.
        open: Whether any other name is accepted (a bare **kwargs).
        types: Annotations by name, as far as they can be resolved.
    """

    names: tuple[str, ...]
    required: Sequence[str]
    defaults: Mapping[str, object]
    open: bool
    types: Mapping[str, object]


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
"""Names of hyperparameters in other libraries, with our possible names."""


_OF_JOBS = {"device": "device", "gpus": "gpus", "seed": "seeds", "seeds": "seeds", "threads": "threads"}


def misnamed(owner: str, noun: str, takes: Parameters, given: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, error) for arguments that `owner` does not accept, and for missing required ones."""
    listed = f"It takes: {', '.join(takes.names)}." if takes.names else "It takes none."
    for name in given:
        if not takes.open and name not in takes.names:
            meant = next((candidate for candidate in _SHORT.get(name.casefold(), ()) if candidate in takes.names), name)
            near = closest(meant, takes.names)
            if noun == "hyperparameter" and not near and name in _OF_JOBS:
                near = f" In the job's file there is a key `{_OF_JOBS[name]}`."
            yield name, f"{owner} has no {noun} '{name}'.{near} {listed}"
    for name in takes.required:
        if name not in given:
            yield name, f"{owner} needs the {noun} '{name}', which the file does not give."


def constructor_parameters(target: Callable[..., object]) -> Parameters:
    """Return the parameters of a constructor, following `**kwargs` to base classes: `EWC(strength, **training)`.

    A constructor that does not pass its `**kwargs` on accepts any name.
    """
    by_name: dict[str, inspect.Parameter] = {}
    annotations: dict[str, tuple[object, dict[str, object]]] = {}
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
                    annotations[parameter.name] = parameter.annotation, getattr(inspect.unwrap(init), "__globals__", {})
        if not open_ or not _passes_arguments_on(init):
            break
    types: dict[str, object] = {}
    for name, (annotation, namespace) in annotations.items():
        with suppress(Exception):  # any error of the author's expression, as of names that do not exist at run time
            holder = SimpleNamespace(__annotations__={name: annotation})
            types |= typing.get_type_hints(holder, namespace, include_extras=True)
    required = [name for name, parameter in by_name.items() if parameter.default is parameter.empty]
    defaults = {name: parameter.default for name, parameter in by_name.items() if name not in required}
    return Parameters((*required, *defaults), required, defaults, open_, types)


def _passes_arguments_on(function: Callable[..., object]) -> bool:
    """Return whether a function calls something with `**`; otherwise it reads its own `**kwargs` with any names."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is None or any(step.opname == "CALL_FUNCTION_EX" for step in dis.get_instructions(code))


@dataclass(frozen=True, slots=True)
class LazyArgument:
    """A value that is created only if it is needed."""

    make: Callable[[], object]


def leaves(*names: str) -> Callable[[F], F]:
    """Decorate a method with a catch-all: it does not use these arguments, so that they need not be created."""

    def marked(function: F) -> F:
        function.leaves = frozenset(names)  # type: ignore[attr-defined]
        return function

    return marked


def named_arguments(function: Callable[..., object], offered: Mapping[str, object]) -> dict[str, object]:
    """Return those of `offered` that `function` names; with a catch-all, all except those that it `leaves`.

    Lazy arguments are created.
    """
    named, left = _named(getattr(function, "__func__", function))
    return {
        name: value.make() if type(value) is LazyArgument else value
        for name, value in offered.items()
        if (name not in left if named is None else name in named)
    }


@lru_cache(256)  # called for every chunk of a stream
def _named(function: Callable[..., object]) -> tuple[frozenset[str] | None, frozenset[str]]:
    """Return (its named parameters; None: it has a catch-all, the arguments that this leaves)."""
    parameters = inspect.signature(function).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None, getattr(function, "leaves", frozenset())
    return frozenset(p.name for p in parameters if p.kind in BY_NAME), frozenset()
