"""Writes the files of `ianvs new`, and never over others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ianvs.base.errors import IanvsError, shown_path
from ianvs.base.package import PACKAGE

__all__ = ["SCHEMA_LINE", "write_new"]

SCHEMA_LINE = "# yaml-language-server: $schema="
"""Begins the comment by which editors find the schema of a yaml file; it is the file's last line."""

_FOLDER = ".schema"
_KINDS = {"benchmarkingjob:": "job", "testenv:": "testenv", "algorithm:": "algorithm"}


def write_new(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write {name: text} into `folder`, which is made; the paths. Raises IanvsError where it would replace a file."""
    files = _with_schemas(files)
    # Schemas are the same for all: those that are there may stay, or be newer.
    there = [folder / name for name in files if (folder / name).exists() and not name.startswith(_FOLDER)]
    if there:
        what = shown_path(there[0])
        raise IanvsError(f"{what} is there already, and nothing was written. Choose another name, or remove it.")
    try:
        (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("w" if name.startswith(_FOLDER) else "x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise IanvsError(f"{shown_path(folder)} can't be written: {error.strerror}.") from error
    return [folder / name for name in files if not name.startswith(_FOLDER)]


def _with_schemas(files: Mapping[str, str]) -> dict[str, str]:
    """`files`, each yaml file with the path of its schema, and the schemas: they hold wherever the folder goes."""
    found = {}
    for name, text in files.items():
        kinds = [kind for top, kind in _KINDS.items() if name.endswith(".yaml") and f"\n{top}" in f"\n{text}"]
        lines = [line for line in text.splitlines() if not line.startswith(SCHEMA_LINE)]
        lines += [f"{SCHEMA_LINE}{_FOLDER}/{kind}.json" for kind in kinds[:1]]
        found[name] = "\n".join([*lines, ""])
    schemas = {f"{_FOLDER}/{path.name}": path.read_text("utf-8") for path in sorted((PACKAGE / "schemas").iterdir())}
    return found | schemas
