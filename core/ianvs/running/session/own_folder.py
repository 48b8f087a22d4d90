"""What a learner keeps in its own folder, in an exam that asks before it tells: it goes with the round, as models do.

A learner that is killed is asked its round again. What it noted there meanwhile would answer for it.
"""

import shutil
from pathlib import Path

from ianvs.store.sealed import remove

_NOTES = ".folder"  # beside what save() wrote


def keep_notes(own: Path, model: Path) -> None:
    """Copy what lies in the learner's folder into that of its model."""
    if any(own.iterdir()):
        shutil.copytree(own, model / _NOTES, symlinks=True)


def bring_back_notes(model: Path | None, own: Path) -> None:
    """In the learner's folder is what was there when `model` was stored, and nothing else; None: nothing was."""
    for path in own.iterdir():
        remove(path)
    if model is not None and (model / _NOTES).is_dir():
        shutil.copytree(model / _NOTES, own, symlinks=True, dirs_exist_ok=True)
