"""Checks values of hyperparameters against the annotations of the constructor.

Yaml knows strings, numbers, true and false, null, lists and mappings. Annotations with only these types are checked,
and in others the parts with only these types. An integer is a valid float; `true` and `"0.05"` are no numbers: values
are not converted.
"""

import json
import math
import numbers
import os
import types
import typing
from collections import abc
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import pydantic
from pydantic import AllowInfNan, Strict, TypeAdapter

from ianvs.base.errors import Location, ValidationError
from ianvs.base.secrets import hide_secrets, is_secret
from ianvs.config.spec import ModuleSpec
from ianvs.config.strict_yaml import described
from ianvs.plugins.signature import Parameters

_LISTS = (list, tuple, set, frozenset, abc.Sequence, abc.MutableSequence, abc.Iterable, abc.Collection, abc.Set)
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
_PATHS = (Path, os.PathLike)
# Types of pydantic's errors about constraints of Field.
_LIMITS = ("greater_than", "less_than", "multiple_of", "too_", "string_too", "string_pattern")
_PLURALS = {"a whole number": "whole numbers", "a number": "numbers", "a text": "texts", "a path": "paths"}
_LONGEST = 60  # characters of a value in a message


def type_problems(module: ModuleSpec, takes: Parameters, place: Location | None) -> Iterator[ValidationError]:
    """Yield an error for each value of the module's grid and constants that its constructor's annotation excludes."""
    given = {**{name: (value,) for name, value in module.constants.items()}, **dict(module.grid)}
    for name, values in given.items():
        if name not in takes.types:
            continue
        annotation, default = takes.types[name], takes.defaults.get(name, ...)
        if default is None:
            annotation = annotation | None if isinstance(annotation, type) else Union[annotation, None]  # noqa: UP007
        adapter = _adapter(annotation)
        if adapter is None:
            continue
        for index, value in enumerate(values):
            mismatch = _wrong(adapter, annotation, value, tried=name in dict(module.grid))
            if mismatch is None or (type(value) is type(default) and value == default):
                continue
            expected, remedy = mismatch
            shown = "a value that is not shown" if is_secret(name) else _shown(value)
            if isinstance(default, bool | int | float | str) and not is_secret(name):
                remedy += f" Its default is {_shown(default, bare=True)}."
            message = f"{name} of {module.name} takes {expected}, found {shown}.{remedy or f' Write {expected}.'}"
            yield ValidationError(message, value_place(module, name, index) or place, code="wrong-type")


def value_place(module: ModuleSpec, name: str, index: int = 0) -> Location | None:
    """Return the place of a hyperparameter's value in its file; None if no file has it."""
    places = module.value_places.get(name, ())
    return places[index] if index < len(places) else module.places.get(name)


def _wrong(adapter: TypeAdapter[object], annotation: object, value: object, tried: bool) -> tuple[str, str] | None:
    """Return (the expected value, a remedy) if `annotation` excludes `value`, else None.

    Tried: as one of several values.
    """
    try:
        adapter.validate_python(value)
    except pydantic.ValidationError as error:
        wanted = _described(annotation)
        messages = {detail["type"]: str(detail["msg"]) for detail in error.errors()}
        if "finite_number" in messages:
            return wanted, " Write a finite number."
        limits = [message for kind, message in messages.items() if kind.startswith(_LIMITS)]
        if limits:
            return f"{wanted} (here: {limits[0][0].lower()}{limits[0][1:]})", ""
        return wanted, _remedy(annotation, value, tried)
    except Exception:  # another error of the author's validator
        return None
    return None


def _remedy(annotation: object, value: object, tried: bool) -> str:
    kinds = set(_alternatives(annotation))
    numeric = {float, int} & kinds
    if isinstance(value, str) and numeric and _is_number(value):
        return f" Write it without quotes: {value.strip()}."
    if tried and isinstance(value, list) and kinds <= {bool, int, float, str, type(None)}:
        return " Each entry of `values` is one value to try: write it without brackets of its own."
    if isinstance(value, float) and int in numeric and value.is_integer():
        return f" Write {int(value)}."
    if value is None:
        return " Leave the hyperparameter out, or give it a value."
    return ""


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _shown(value: object, bare: bool = False) -> str:
    if not bare and not isinstance(value, list | dict):
        return described(value)
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    text = hide_secrets(text)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return text if bare else f"{'the list' if isinstance(value, list) else 'the mapping'} {text}"


def _adapter(annotation: object) -> TypeAdapter[object] | None:
    """Return an adapter; None for an annotation that is not understood."""
    try:
        return TypeAdapter(_of_yaml(annotation))
    except Exception:
        return None


def _of_yaml(annotation: Any) -> Any:
    """Return the annotation in terms of yaml's types; Any for others."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (None, type(None)):
        return None
    if annotation in (bool, int, str):
        return Annotated[annotation, Strict()]
    if annotation in (float, numbers.Real, numbers.Number):
        return Annotated[float, Strict(), AllowInfNan(False)]
    if annotation is numbers.Integral:
        return Annotated[int, Strict()]
    if isinstance(annotation, typing.NewType):
        return _of_yaml(annotation.__supertype__)
    if origin is Annotated:
        return Annotated[(_of_yaml(arguments[0]), *arguments[1:])]
    if origin in (Union, types.UnionType):
        return Union[tuple(_of_yaml(part) for part in arguments)]  # noqa: UP007
    if origin is Literal:
        return annotation
    kind = origin or annotation
    if kind in _PATHS:
        return Annotated[str, Strict()]
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        return tuple[tuple(_of_yaml(part) for part in arguments)]  # type: ignore[misc]
    if kind in _LISTS:
        return list[_of_yaml(arguments[0]) if arguments else Any]  # type: ignore[misc]
    if kind in _MAPPINGS:
        return dict[Any, _of_yaml(arguments[1]) if len(arguments) == 2 else Any]  # type: ignore[misc]
    return Any


def _alternatives(annotation: object) -> Iterator[object]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (Union, types.UnionType):
        for part in arguments:
            yield from _alternatives(part)
    elif origin is Annotated:
        yield from _alternatives(arguments[0])
    else:
        yield float if annotation in (numbers.Real, numbers.Number) else annotation


def _described(annotation: object) -> str:
    """Describe the expected value in terms of yaml."""
    return " or ".join(dict.fromkeys(_words(part) for part in _alternatives(annotation)))


def _words(annotation: object) -> str:
    simple = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(None): "null"}
    if annotation in simple:
        return simple[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return f"one of {', '.join(json.dumps(value) for value in arguments)}"
    kind = origin or annotation
    if kind in _PATHS:
        return "a path"
    if kind is tuple and arguments and arguments[-1] is not Ellipsis:
        return f"a list of {len(arguments)}"
    if kind in _LISTS:
        items = [part for part in arguments if part is not Ellipsis][:1]
        words = _described(items[0]) if items and items[0] is not Any else ""
        return f"a list of {_PLURALS.get(words, words)}" if words else "a list"
    if kind in _MAPPINGS:
        return "a mapping"
    return str(getattr(annotation, "__name__", annotation))
