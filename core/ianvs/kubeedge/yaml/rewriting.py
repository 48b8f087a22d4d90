"""A file that is read in another form than it is written, with the changes and their reasons."""

import copy
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path

from ianvs.base.errors import Location, ValidationError
from ianvs.config.models.base import at, entries
from ianvs.config.strict_yaml import Document, Step, Steps

NEAR = 0.75  # difflib's ratio from which a key counts as misspelt; `val_data` and `test_data` have 0.71


@dataclass(frozen=True)
class Change:
    """A change that rewriting made.

    Attributes:
        message: Explains it to the author of the file; `migrate` writes it beside the changed entry.
        path: Of the changed entry in the rewritten document.
        renamed: Whether it replaces a path that leads nowhere (`path_lookup.py`): a run is refused until the file is
            changed.
    """

    message: str
    path: Steps
    place: Location
    renamed: tuple[str, str] | None = None

    @property
    def problem(self) -> ValidationError:
        warning = self.renamed is None
        return ValidationError(self.message, self.place, warning, code="rewritten" if warning else "missing-file")


@dataclass
class Rewriting:
    """A copy of a document's data that can be changed. Each value keeps the place where it was written."""

    original: Document
    changes: list[Change] = field(default_factory=list)
    problems: list[ValidationError] = field(default_factory=list)  # errors that can't be corrected
    paths: dict[Steps, tuple[str, Path]] = field(default_factory=dict)  # by place of a path: as written, and found
    _moved: list[dict[Steps, Steps]] = field(default_factory=list)  # {to: from} of simultaneous moves, in their order

    def __post_init__(self) -> None:
        self.data: object = copy.deepcopy(self.original.data)

    def place(self, path: Steps) -> Location:
        """Return the place in the file of the present value at `path`."""
        return self.original.key_place(self._origin(path))

    def changed(
        self, path: Steps, message: str, *, about: Steps | None = None, renamed: tuple[str, str] | None = None
    ) -> None:
        """Record that the value at `path` is read in another form.

        About: the place of the message, if that will be removed.
        """
        self.changes.append(Change(message, path, self.place(about or path), renamed))

    def put(self, path: Steps, value: object, message: str | None = None) -> None:
        if message is not None:
            self.changed(path, message)
        at(self.data, *path[:-1])[path[-1]] = value

    def lead(self, path: Steps, target: Path) -> None:
        """Replace the path at `path` by `target`."""
        self.paths[path] = (at(self.data, *path), target)
        self.put(path, str(target))

    def drop(self, path: Steps, message: str) -> None:
        self.changed(path[:-1], message, about=path)
        del at(self.data, *path[:-1])[path[-1]]

    def move(self, path: Steps, to: Steps, message: str) -> None:
        """Move the value at `path` to `to`."""
        self.changed(to, message, about=path)
        at(self.data, *to[:-1])[to[-1]] = at(self.data, *path[:-1]).pop(path[-1])
        self._moved.append({to: path})

    def relist(self, path: Steps, sources: Iterable[Steps]) -> None:
        """Make a list of the values at the paths `sources` at `path`."""
        origins = {(*path, index): where for index, where in enumerate(sources)}
        self._moved.append(origins)
        self.put(path, [at(self.data, *where) for where in origins.values()])

    def ignore(self, path: Steps, keys: Collection[str]) -> list[str]:
        """Remove those of the keys at `path` that are not `keys` and not similar to one, and return them."""
        section = at(self.data, *path)
        if not isinstance(section, dict):
            return []
        ignored = [key for key in section if key not in keys and not get_close_matches(key, keys, 1, NEAR)]
        for key in ignored:
            del section[key]
        return ignored

    def below(self, *path: Step) -> list[Steps]:
        """Return the path of each entry of the present list or mapping at `path`."""
        return [where for where, _ in entries(self.data, *path)]

    def document(self) -> Document:
        origins = {path: self._origin(path) for path in self._paths(())}
        values = {path: self.original.value_place(before) for path, before in origins.items()}
        named = {path: before for path, before in origins.items() if path and isinstance(path[-1], str)}
        keys = {path: self.original.key_place(before) for path, before in named.items()}
        return Document(self.original.file, self.data, keys, values, self.original.problems)

    def _origin(self, path: Steps) -> Steps:
        """Return the original path of the value that is now at `path`."""
        for moved in reversed(self._moved):
            if (to := next((to for to in moved if path[: len(to)] == to), None)) is not None:
                path = (*moved[to], *path[len(to) :])
        return path

    def _paths(self, path: Steps) -> Iterator[Steps]:
        yield path
        for where in self.below(*path):
            yield from self._paths(where)
