"""What the sections of the three files share: checks that know where they failed, and paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field, ValidationInfo

from ianvs.config.paths import Lookup, Want
from ianvs.config.secrets import without_userinfo
from ianvs.config.strict_yaml import Step, Steps

__all__ = [
    "FilePath",
    "Link",
    "Name",
    "Slip",
    "at",
    "described",
    "entries",
    "found_path",
    "leaves",
    "lookup_of",
    "path_text",
    "repeated",
]


@dataclass(frozen=True)
class Slip:
    """A problem at a path: within the section that was checked; `key`: at the key rather than its value."""

    message: str
    path: Steps
    key: bool = True


Name = Annotated[str, Field(min_length=1)]
Link = Annotated[str, Field(min_length=1)]
"""The path of another configuration file; the loader follows it and says so when it can't."""


def described(value: object) -> str:
    """What was found, as a reader of yaml calls it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        value = without_userinfo(value)
        return f"the text '{value if len(value) <= 40 else value[:37] + '...'}'"
    return "a mapping" if isinstance(value, dict) else "a list"


def path_text(value: object) -> str:
    """`value` if it is text. Raises ValueError otherwise."""
    if not isinstance(value, str):
        raise ValueError(f"expected a path, found {described(value)}.")
    return value


def lookup_of(info: ValidationInfo) -> Lookup:
    """How paths of the file are resolved, which is the context of every validation."""
    return cast("Lookup", info.context)


def found_path(value: object, info: ValidationInfo, want: Want = "file", below: Path | None = None) -> Path:
    """The existing file or folder that `value` names, looked for by the Lookup in the context."""
    return lookup_of(info).find(path_text(value), want, below)


def _optional_file(value: object, info: ValidationInfo) -> Path | None:
    return None if value in (None, "") else found_path(value, info)


FilePath = Annotated[Path | None, BeforeValidator(_optional_file)]
"""An existing file. Nothing, or empty text as some files of Ianvs have it, is None."""


def at(data: object, *path: Step) -> Any:
    """What stands at `path` in yaml data of any shape, None if nothing does."""
    for step in path:
        if isinstance(data, Mapping):
            data = data.get(step) if isinstance(step, str) else None
        elif isinstance(data, list) and isinstance(step, int):
            data = data[step] if step < len(data) else None
        else:
            return None
    return data


def entries(data: object, *path: Step) -> Iterator[tuple[Steps, Any]]:
    """(path, value) of each entry of the list or mapping at `path` in yaml data of any shape."""
    found = at(data, *path)
    if isinstance(found, list):
        yield from (((*path, index), value) for index, value in enumerate(found))
    elif isinstance(found, Mapping):
        yield from (((*path, key), value) for key, value in found.items())


def leaves(data: object, *path: Step) -> Iterator[tuple[Steps, Any]]:
    """As `entries`, with the entries of an entry that is a list in its place."""
    for where, value in entries(data, *path):
        yield from entries(data, *where) if isinstance(value, list) else [(where, value)]


def repeated(what: str, named: Iterable[tuple[Steps, Any]], remedy: str, key: bool = False) -> Iterator[Slip]:
    """A slip for each (path, name) whose name came before."""
    seen: Counter[str] = Counter()
    for path, name in named:
        if isinstance(name, str):
            if seen[name]:
                yield Slip(f"{what} '{name}' is given twice. {remedy}", path, key)
            seen[name] += 1
