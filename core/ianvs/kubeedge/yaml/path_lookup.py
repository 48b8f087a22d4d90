"""Resolves paths in the files of a job of KubeEdge Ianvs; docs/ianvs.md has the order of candidates."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ianvs.base.errors import InvalidValue, shown_path
from ianvs.config.paths import Lookup, Want

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_MOST = 50_000  # maximum number of searched entries for a moved path


class FoundElsewhereError(InvalidValue):
    """A path that leads nowhere, while its target is below the job's folder, at `path`.

    renamed: its former and its present prefix; all paths with that prefix are wrong in the same way.
    """

    def __init__(self, message: str, path: Path, renamed: tuple[str, str]) -> None:
        remedy = f"found {shown_path(path)}; use `ianvs migrate`, which writes the job with paths that hold"
        rest = f". So with all paths below '{renamed[0]}'" if renamed[0] else ""
        super().__init__(f"{message}; {remedy}{rest}.", "missing-file")
        self.path, self.renamed = path, renamed


@dataclass(frozen=True)
class KubeEdgeLookup(Lookup):
    """A path as written: from the working directory, beside its file, from a folder above the job, from --root."""

    job: Path = Path()  # the folder of the job's file
    start: Path | None = None  # the working directory that the job names
    home: Path = Path()  # the directory in which Ianvs would have been called
    alike: int = 1  # number of equal trailing parts that identify a moved path

    def find(self, text: object, want: Want = "file", below: Path | None = None) -> Path:
        """Find a path as Lookup.find does; of imports ("any") also a module's dotted name, from the working directory.

        Raises FoundElsewhereError if its target is elsewhere below the job's folder.
        """
        if want == "any" and _DOTTED.fullmatch(str(text)) and not str(text).endswith((".py", ".yaml", ".yml")):
            text = f"{str(text).replace('.', '/')}.py"
        try:
            return super().find(text, want, below)
        except ValueError:
            written = self._written(text)
            kind = want if want != "any" else "file or folder"
            where = "" if written.is_absolute() else " here, from the working directory, or from a folder above the job"
            message = f"there is no {kind} '{text}'{where}"
            if (moved := self._moved(written)) is None:
                raise InvalidValue(f"{message}.", "missing-file") from None
            raise FoundElsewhereError(message, moved, _renamed(written, moved)) from None

    def assumed(self, text: str) -> Path:
        """Return where a missing path would be. Raises ValueError for an unset variable."""
        path = (self.home if self.start is None else self.folder) / self._written(text)
        return path.resolve() if os.pardir in path.parts else path

    def _starts(self, below: Path | None) -> list[Path]:
        # A job that names its working directory is in the native form, in which paths are relative to their file.
        first = (self.working_directory, self.folder) if self.start is None else (self.folder, self.start)
        return [*filter(None, (below, *first, self.job, *self.job.parents, self.root))]

    def _moved(self, written: Path) -> Path | None:
        """Return the only entry below the job's folder with the most trailing parts in common with `written`."""
        parts = tuple(part for part in written.parts if part not in (os.curdir, os.pardir, os.sep))
        ends = [path for path in islice(self.job.rglob("*"), _MOST) if parts and path.name == parts[-1]]
        for length in range(len(parts), self.alike - 1, -1):
            if alike := [path for path in ends if path.parts[-length:] == parts[-length:]]:
                return alike[0] if len(alike) == 1 else None
        return None


def root_of(lookup: KubeEdgeLookup, links: Iterable[str]) -> Path:
    """Return the directory in which Ianvs would have been called: the one in which the paths `links` of the job's file
    exist.

    If none does, the one with the first folder of one of them; else the job's folder.
    """
    relative = [path for path in map(Path, links) if not path.is_absolute() and path.parts]
    starts = (lookup.working_directory, lookup.job, *lookup.job.parents)
    for path in (*relative, *(Path(path.parts[0]) for path in relative if len(path.parts) > 1)):
        for start in starts:
            if (start / path).exists():
                return start
    return lookup.job


def _renamed(written: Path, actual: Path) -> tuple[str, str]:
    """Return both paths without their common trailing parts."""
    old, new = list(written.parts), list(actual.parts)
    while old and new and old[-1] == new[-1]:
        old.pop(), new.pop()
    return (str(Path(*old)) if old else "", str(Path(*new)))
