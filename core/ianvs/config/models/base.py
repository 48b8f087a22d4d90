"""Tools of the models: checks that know the place of an error, and paths."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, ValidationInfo

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import InvalidValue
from ianvs.config.paths import Lookup, Want
from ianvs.config.strict_yaml import Step, Steps, described


@dataclass(frozen=True)
class ConfigProblem:
    """An error in a section, before its file is known.

    Attributes:
        message: As of a ValidationError.
        path: Its place, below the checked section.
        key: Whether it is at the key rather than at its value.
        code: The error code.
        warning: Whether it may be intended; reported only of files without errors.
    """

    message: str
    path: Steps
    key: bool = True
    code: ErrorCode = field(kw_only=True)
    warning: bool = field(default=False, kw_only=True)


T = TypeVar("T")

Name = Annotated[str, Field(min_length=1)]


def path_text(value: object) -> str:
    """Return `value` if it is a string. Raises ValueError otherwise."""
    if not isinstance(value, str):
        raise InvalidValue(f"expected a path, found {described(value)}.", "wrong-type")
    return value


def existing_path(value: object, info: "ValidationInfo[Lookup]", want: Want) -> Path | None:
    """Return the existing file or folder that `value` names, by the Lookup in the context of every validation."""
    return None if value in (None, "") else info.context.find(value, want)


FilePath = Annotated[Path | None, BeforeValidator(partial(existing_path, want="file"))]
FolderPath = Annotated[Path | None, BeforeValidator(partial(existing_path, want="folder"))]
"""An existing file or folder. Nothing, or an empty string as in some files of Ianvs, is None."""


def at(data: object, *path: Step) -> Any:
    """Return the value at `path` in yaml data of any shape, None if there is none."""
    for step in path:
        if isinstance(data, Mapping):
            data = data.get(step) if isinstance(step, str) else None
        elif isinstance(data, list) and isinstance(step, int):
            data = data[step] if step < len(data) else None
        else:
            return None
    return data


def entries(data: object, *path: Step) -> Iterator[tuple[Steps, Any]]:
    """Yield (path, value) of each entry of the list or mapping at `path` in yaml data of any shape."""
    section = at(data, *path)
    if isinstance(section, list):
        yield from (((*path, index), value) for index, value in enumerate(section))
    elif isinstance(section, Mapping):
        yield from (((*path, key), value) for key, value in section.items())


def one_or_several(data: object, *path: Step) -> list[Steps]:
    """Return the path of each entry of the list at `path`; [path] if there is no list."""
    return [where for where, _ in entries(data, *path)] if isinstance(at(data, *path), list) else [path]


def leaves(data: object, *path: Step) -> Iterator[tuple[Steps, Any]]:
    """Yield `entries`, replacing an entry that is a list by its entries."""
    for where, value in entries(data, *path):
        yield from entries(data, *where) if isinstance(value, list) else [(where, value)]


def repeated(pairs: Iterable[tuple[Steps, Hashable]], message: str, key: bool = False) -> Iterator[ConfigProblem]:
    """Yield a problem for each (path, value) whose value came before. message: with {} for the value."""
    seen: set[Hashable] = set()
    for path, value in pairs:
        if value in seen:
            yield ConfigProblem(message.format(value), path, key, code="duplicate-entry")
        seen.add(value)
