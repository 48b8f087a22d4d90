"""Paths in configuration files: their variables, and where they are searched."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

from ianvs.base.errors import InvalidValue, shown_path
from ianvs.base.near_names import nearest
from ianvs.config.strict_yaml import described

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

Want = Literal["file", "folder", "any", "new"]


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Return `text` with `${VAR}` and `${VAR:-default}` replaced.

    As in a shell, the default also replaces an empty VAR.

    Raises ValueError for an unset variable without a default, for an unclosed `${`, and for `$VAR` at the beginning,
    which would otherwise be the name of a folder.
    """

    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        expanded = environment.get(name)
        if default is not None:
            return expanded or default
        if expanded is None:
            raise InvalidValue(
                f"the variable {name} is not set. Set it, or write a default: ${{{name}:-./folder}}.", "unset-variable"
            )
        return expanded

    if "${" in _VARIABLE.sub("", text):
        raise InvalidValue(
            f"'{text}' has a '${{' that is not a variable. Write ${{NAME}} or ${{NAME:-default}}.", "invalid-variable"
        )
    if bare := re.match(r"\$([A-Za-z_][A-Za-z0-9_]*)(?=/|$)", text):
        raise InvalidValue(f"'{text}': variables have braces here. Write ${{{bare[1]}}}.", "invalid-variable")
    return _VARIABLE.sub(value, text)


@dataclass(frozen=True)
class Lookup:
    """Resolves the paths of one file: beside that file first, then in the working directory."""

    folder: Path
    working_directory: Path
    environment: Mapping[str, str]
    root: Path | None = None  # from the command line; replaces the dataset's root
    # Paths with `${NAME}` as written in files.
    unexpanded_paths: dict[Path, str] = field(default_factory=dict)

    def find(self, text: object, want: Want = "file", below: Path | None = None) -> Path:
        """Return the absolute path of an existing file or folder, searched below `below` first if that is given.

        Args:
            text: The path as it is written.
            want: What it should be; "new" need not exist, and is below the working directory.
            below: A further folder.

        Raises:
            ValueError: With every searched place, or because `text` is not a string.
        """
        written = self._written(text)
        starts = [self.working_directory] if want == "new" else self._starts(below)
        paths = (start / written for start in starts)  # joining an absolute path gives that path
        tried = list(dict.fromkeys(path.resolve() if os.pardir in path.parts else path for path in paths))
        present = [path for path in tried if want == "new" or os.path.exists(path)]  # noqa: PTH110 - for long names
        for path in present:
            if want in ("any", "new") or (path.is_file() if want == "file" else path.is_dir()):
                if "${" in str(text):
                    self.unexpanded_paths[path] = str(text)
                return path
        if present:
            actual, wanted = ("a folder", "a file") if want == "file" else ("a file", "a folder")
            raise InvalidValue(
                f"'{text}' is {actual}, {shown_path(present[0])}; {wanted} belongs here.", "wrong-path-type"
            )
        noun = "file or folder" if want == "any" else want
        looked = " and ".join(map(shown_path, tried))
        raise InvalidValue(f"there is no {noun} '{text}'. Looked for {looked}.{neighbour(tried)}", "missing-file")

    def _written(self, text: object) -> Path:
        if not isinstance(text, str):
            raise InvalidValue(f"expected a path, found {described(text)}.", "wrong-type")
        if not text.strip():
            raise InvalidValue("the path is empty. Write the path of a file or folder.", "empty-value")
        path = Path(expand(text, self.environment) if "$" in text else text)
        if "\0" in str(path):
            raise InvalidValue("the path has a NUL character in it. Remove it.", "invalid-path")
        return path.expanduser() if path.parts[:1] == ("~",) else path

    def _starts(self, below: Path | None) -> list[Path]:
        """Return the folders in which paths are searched, in order."""
        return [*filter(None, (below, self.folder, self.working_directory))]


def neighbour(tried: list[Path]) -> str:
    """Return " Did you mean 'x'?" for a missing path, x being a similar name of the same kind beside it; or ""."""
    for path in tried:
        if near := _near_name(path):
            return f" Did you mean '{near}'?"
        folder = path.parent
        if not folder.exists() and (near := _near_name(folder)) and (folder.with_name(near) / path.name).exists():
            return f" Did you mean '{Path(near) / path.name}'?"
        if near := _elsewhere(path):
            return f" Did you mean '{near}'?"
    return ""


def _elsewhere(path: Path) -> str | None:
    """Return the place of a file of the same name one folder below or above that of a missing path, relative to it."""
    try:
        if (path.parent.parent / path.name).is_file() and not path.parent.exists():
            return path.name
        with os.scandir(path.parent) as listing:
            folders = [entry.name for entry in islice(listing, 1000) if entry.is_dir() and entry.name[:1] != "."]
        return next(
            (f"{name}/{path.name}" for name in sorted(folders) if (path.parent / name / path.name).is_file()), None
        )
    except OSError:
        return None


def _near_name(path: Path) -> str | None:
    """Return the name beside a missing path that is nearest to its own, of the same suffix."""
    try:
        with os.scandir(path.parent) as listing:
            names = [Path(entry.name) for entry in islice(listing, 1000)]
    except OSError:
        return None
    suffixes = (".yaml", ".yml") if path.suffix in (".yaml", ".yml") else (path.suffix,)
    stems = {name.stem: name.name for name in names if name.suffix in suffixes}
    near = nearest(path.stem, stems)
    return None if near is None else stems[near]
