"""What a learner keeps in its own folder: it goes with the round, as models do.

A learner that is killed is taught its round again. What it noted there meanwhile would be of a round that never was.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ianvs.store.checksummed_json import remove

_NOTES = ".folder"  # beside what save() wrote


def keep_notes(folder: Path, model: Path) -> None:
    """Copy what lies in the learner's folder into that of its model."""
    if any(folder.iterdir()):
        shutil.copytree(folder, model / _NOTES, symlinks=True, ignore=_special)


def bring_back_notes(model: Path | None, folder: Path) -> None:
    """In the learner's folder is what was there when `model` was stored, and nothing else; None: nothing was."""
    for path in folder.iterdir():
        remove(path)
    if model is not None and (model / _NOTES).is_dir():
        shutil.copytree(model / _NOTES, folder, symlinks=True, dirs_exist_ok=True)


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Context manager: the current folder is the learner's own, so that two cases that write `best.pt` never meet."""
    before = Path.cwd()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def missing_file_hint(error: BaseException, folder: Path, started_in: Path) -> str:
    """What to do about a relative file that was not found, and lies where ianvs was started; "" for anything else."""
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
    """Those that can't be copied: sockets, pipes, devices."""

    def plain(name: str) -> bool:
        mode = os.lstat(f"{folder}/{name}").st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)

    return [name for name in names if not plain(name)]
