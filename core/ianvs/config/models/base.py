"""Tools of the models: checks that know the place of an error, and paths."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import InvalidValue
from ianvs.base.secrets import hide_secrets
from ianvs.config.paths import Lookup, Want
from ianvs.config.strict_yaml import Step, Steps


@dataclass(frozen=True)
class ConfigProblem:
    """An error in a section, before its file is known.

    Attributes:
        message: As of a ValidationError.
        path: Its place, below the checked section.
        key: Whether it is at the key rather than at its value.
        code: The error code.
    """

    message: str
    path: Steps
    key: bool = True
    code: ErrorCode = field(kw_only=True)


T = TypeVar("T")

Name = Annotated[str, Field(min_length=1)]


def described(value: object) -> str:
    """Return the type of a value in YAML terms."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        value = hide_secrets(value)
        return f"the text '{value if len(value) <= 40 else value[:37] + '...'}'"
    return "a mapping" if isinstance(value, dict) else "a list"


def path_text(value: object) -> str:
    """Return `value` if it is a string. Raises ValueError otherwise."""
    if not isinstance(value, str):
        raise InvalidValue(f"expected a path, found {described(value)}.", "wrong-type")
    return value


def lookup_of(info: ValidationInfo) -> Lookup:
    """Return the lookup of paths, which is the context of every validation."""
    return cast("Lookup", info.context)


def found_path(value: object, info: ValidationInfo, want: Want, below: Path | None = None) -> Path:
    """Return the existing file or folder that `value` names, by the Lookup in the context."""
    return lookup_of(info).find(path_text(value), want, below)


def _existing(want: Want) -> BeforeValidator:
    def existing_path(value: object, info: ValidationInfo) -> Path | None:
        return None if value in (None, "") else found_path(value, info, want)

    return BeforeValidator(existing_path)


FilePath = Annotated[Path | None, _existing("file")]
FolderPath = Annotated[Path | None, _existing("folder")]
"""An existing file or folder. Nothing, or an empty string as in some files of Ianvs, is None."""


def one_key(message: str) -> AfterValidator:
    """Return a validator that refuses a mapping with more or fewer keys than one, with this message."""

    def checked(entry: dict[str, T]) -> dict[str, T]:
        if len(entry) != 1:
            raise InvalidValue(message, "wrong-length")
        return entry

    return AfterValidator(checked)


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


def repeats(pairs: Iterable[tuple[T, Hashable]]) -> Iterator[T]:
    """Yield the places of repeated values in (place, value) pairs."""
    seen: set[Hashable] = set()
    for where, value in pairs:
        if value in seen:
            yield where
        seen.add(value)


def repeated(
    noun: str, named: Iterable[tuple[Steps, object]], remedy: str, key: bool = False
) -> Iterator[ConfigProblem]:
    """Yield a problem for each (path, name) whose name came before."""
    for path, name in repeats(((path, name), name) for path, name in named if isinstance(name, str)):
        yield ConfigProblem(f"{noun} '{name}' is given twice. {remedy}", path, key, code="duplicate-entry")
