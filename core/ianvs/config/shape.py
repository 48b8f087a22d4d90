"""What the models say about a path in a file: which keys are known there, and where a key belongs."""

import typing
from collections.abc import Iterator
from functools import cache

from ianvs.config.models import FILE_KINDS
from ianvs.config.models.form import ReadAs, Spec
from ianvs.config.strict_yaml import Steps


def sections_at(model: type[Spec], path: Steps) -> list[type[Spec]]:
    """The sections that may stand at `path` below `model`; several where a value has several forms."""
    found = [model]
    for step in path:  # a position in a list, or the name of an entry, leads to no other section
        known = [
            section.known_keys()[step] for section in found if isinstance(step, str) and step in section.known_keys()
        ]
        found = [inner for key in known for inner in _sections_in(key.form)] or found
    return found


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
    homes = _homes().get(key, set())
    if len(homes) != 1:
        return ""
    ((file, name),) = homes
    there = "" if file == kind else " file" if name == file else f" of the {file} file"
    return f" It belongs in {'the ' if there == ' file' else ''}{name}{there}."


@cache
def _homes() -> dict[str, set[tuple[str, str]]]:
    """(file, section) of all that know a key, by key."""
    homes: dict[str, set[tuple[str, str]]] = {}
    for file, model in FILE_KINDS.items():
        for name, keys in _sections(file, model):
            for key in keys:
                homes.setdefault(key, set()).add((file, name))
    return homes


def _sections(name: str, model: type[Spec]) -> Iterator[tuple[str, set[str]]]:
    yield name, set(model.known_keys())
    for name, key in model.known_keys().items():
        for inner in _sections_in(key.form):
            yield from _sections(name, inner)


def _sections_in(form: object) -> Iterator[type[Spec]]:
    if isinstance(form, type) and issubclass(form, Spec):
        yield form
    forms = [vars(mark).values() for mark in getattr(form, "__metadata__", ()) if isinstance(mark, ReadAs)]
    for inner in forms[0] if forms else typing.get_args(form):
        yield from _sections_in(inner)
