"""Writes the files of `ianvs new`, and never over others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ianvs.errors import IanvsError, shown_path

__all__ = ["write_new"]


def write_new(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write {name: text} into `folder`, which is made; the paths. Raises IanvsError where it would replace a file."""
    there = [folder / name for name in files if (folder / name).exists()]
    if there:
        what = shown_path(there[0])
        raise IanvsError(f"{what} is there already, and nothing was written. Choose another name, or remove it.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            with (folder / name).open("x", encoding="utf-8") as stream:
                stream.write(text)
    except OSError as error:
        raise IanvsError(f"{shown_path(folder)} can't be written: {error.strerror}.") from error
    return [folder / name for name in files]
