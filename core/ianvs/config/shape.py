"""What the models say about a path in a file: which keys are known there, and where a key belongs."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any

from ianvs.config.models import FILE_KINDS
from ianvs.config.models.base import Section
from ianvs.config.strict_yaml import Step, Steps

__all__ = ["home_of", "label", "sections_at"]


def sections_at(model: type[Section], path: Steps) -> list[type[Section]]:
    """The models that may stand at `path` below `model`; several where a value has several forms."""
    kinds: list[Any] = [model]
    for step in path:
        kinds = [inner for kind in kinds for inner in _inner(kind, step)]
    return [kind for kind in kinds if _is_section(kind)]


def label(path: Steps) -> str:
    """How a message calls what stands at `path`: by its last key."""
    if "hyperparameters" in path:
        below = path[path.index("hyperparameters") + 1 :]
        names = [step for step in below if isinstance(step, str)]
        if names:
            whole = f"hyperparameter '{names[0]}'"
            inside = "an entry of values" if path[-1] != names[-1] else names[-1]
            return whole if len(names) == 1 else f"{inside} of {whole}"
    names = [step for step in path if isinstance(step, str)]
    return f"an entry of {names[-1]}" if isinstance(path[-1], int) else names[-1]


def home_of(key: str, kind: str) -> str:
    """ " It belongs in ..." for a key that one section knows, seen from a file of `kind`; "" for any other key."""
    homes = {(file, name) for file, model in FILE_KINDS.items() for name, keys in _sections(file, model) if key in keys}
    if len(homes) != 1:
        return ""
    ((file, name),) = homes
    there = "" if file == kind else " file" if name == file else f" of the {file} file"
    return f" It belongs in {'the ' if there == ' file' else ''}{name}{there}."


def _sections(name: str, model: type[Section]) -> Iterator[tuple[str, set[str]]]:
    yield name, set(model.model_fields)
    for key, field in model.model_fields.items():
        for inner in _sections_in(field.annotation):
            yield from _sections(key, inner)


def _sections_in(kind: Any) -> Iterator[type[Section]]:
    if _is_section(kind):
        yield kind
    for argument in typing.get_args(kind):
        yield from _sections_in(argument)


def _forms(kind: Any) -> Iterator[Any]:
    origin = typing.get_origin(kind)
    if origin is Annotated:
        yield from _forms(typing.get_args(kind)[0])
    elif origin in (types.UnionType, typing.Union):
        for form in typing.get_args(kind):
            yield from _forms(form)
    else:
        yield kind


def _inner(kind: Any, step: Step) -> Iterator[Any]:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is list and isinstance(step, int):
        yield from _forms(arguments[0])
    elif origin is dict and isinstance(step, str):
        yield from _forms(arguments[1])
    elif _is_section(kind) and step in kind.model_fields:
        yield from _forms(kind.model_fields[step].annotation)


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)
