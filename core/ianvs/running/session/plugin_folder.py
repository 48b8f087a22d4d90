"""Stores and restores the learner's folder with each round, as models.

After a kill, the round is trained again, so files that were written during the lost attempt have to be removed.
"""

import os
import shutil
import stat
from pathlib import Path

from ianvs.store.checksummed_json import remove

_NOTES = ".folder"  # beside the saved model


def store_plugin_folder(folder: Path, model: Path) -> None:
    """Copy the learner's folder into that of its model."""
    shutil.copytree(folder, model / _NOTES, symlinks=True, ignore=_special)


def restore_plugin_folder(model: Path | None, folder: Path) -> None:
    """Restore the learner's folder to its content when `model` was stored; None: empty it."""
    for path in folder.iterdir():
        remove(path)
    if model is not None and (model / _NOTES).is_dir():
        shutil.copytree(model / _NOTES, folder, symlinks=True, dirs_exist_ok=True)


def missing_file_hint(error: BaseException, folder: Path, started_in: Path) -> str:
    """Return a hint if a missing relative file exists where ianvs was started; else ""."""
    name = getattr(error, "filename", None)
    if not isinstance(error, FileNotFoundError) or not isinstance(name, str | os.PathLike):
        return ""
    inside = Path(name)
    if inside.is_absolute():
        if not inside.is_relative_to(folder):
            return ""
        inside = inside.relative_to(folder)
    original = started_in / inside
    if not original.exists():
        return ""
    return f". The current folder of a case is its own; the file lies where ianvs was started: name it as {original}"


def _special(folder: str, names: list[str]) -> list[str]:
    """Return names that can't be copied: sockets, pipes, devices."""

    def plain(name: str) -> bool:
        mode = os.lstat(f"{folder}/{name}").st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)

    return [name for name in names if not plain(name)]
