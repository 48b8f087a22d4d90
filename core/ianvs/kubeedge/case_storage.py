"""Stores the state of a case between rounds, and its outcome."""

import hashlib
import json
import os
import pickle
import random
import shutil
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.store.files import write_atomic, write_json

_FOLDER = "case"  # below W; plugins get no path in it
_STANDING = "standing.pickle"
_OUTCOME = "outcome.json"


def seed_everything(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _random_states() -> Mapping[str, Any]:
    states: dict[str, object] = {"python": random.getstate(), "numpy": np.random.get_state()}
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _set_random_states(states: Mapping[str, Any]) -> None:
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    if "torch" in states:
        import torch

        torch.set_rng_state(states["torch"])
        if "cuda" in states:
            torch.cuda.set_rng_state_all(states["cuda"])


class Snapshot:
    """The state of a case after a round: instances, state, random generators, environment, and the files of W.

    A case whose instances can't be pickled, or that has state elsewhere, can't resume and restarts. folders: of the
    plugin's modules, whose global values are watched.
    """

    def __init__(self, root: Path, folders: list[str]) -> None:
        self._root, self._path = root, root / _FOLDER / _STANDING
        self._folders = [Path(folder) for folder in folders]
        self._environment = dict(os.environ)
        self._globals = self._global_values()

    @staticmethod
    def is_there(root: Path) -> bool:
        return (root / _FOLDER / _STANDING).exists()

    def keep(self, content: Mapping[str, object]) -> str | None:
        """Store `content` with the state, atomically. Returns why that is impossible, or None."""
        now = self._global_values()
        changed = [name for name, value in self._globals.items() if now.get(name, value) != value]
        self._globals = {**now, **self._globals}
        if changed:
            return f"{changed[0]} changed, which is no part of an instance"
        environment = {k: v for k, v in os.environ.items() if self._environment.get(k) != v}
        try:
            all_else = {"random": _random_states(), "environment": environment, "files": self._files()}
            stored = pickle.dumps({"content": content, **all_else})
        except Exception as error:  # authors' objects may raise anything
            return f"a module can't be pickled: {type(error).__name__}: {error}"
        write_atomic(self._path, stored)
        return None

    def resumed(self) -> Mapping[str, object] | None:
        """Return the last stored content and restore the rest; None if the case can't be resumed."""
        try:
            stored = pickle.loads(self._path.read_bytes())
        except Exception:  # missing, truncated, or of missing classes
            return None
        present = self._files()
        if any(present.get(name) != stamp for name, stamp in stored["files"].items()):
            return None  # a file was overwritten since, so its former state is lost
        for name in sorted(
            present.keys() - stored["files"].keys(), reverse=True
        ):  # the content of a folder comes first
            path = self._root / name
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        os.environ.update(stored["environment"])
        _set_random_states(stored["random"])
        content: Mapping[str, object] = stored["content"]
        return content

    def _files(self) -> dict[str, tuple[int, int] | None]:
        """Return size and time of each file below W, None for a folder, except our own."""
        files: dict[str, tuple[int, int] | None] = {}
        for path in self._root.rglob("*"):
            relative = path.relative_to(self._root)
            if relative.parts[0] != _FOLDER:
                about = path.lstat()
                files[str(relative)] = None if stat.S_ISDIR(about.st_mode) else (about.st_size, about.st_mtime_ns)
        return files

    def _global_values(self) -> dict[str, str]:
        """Return digests of plain values in the plugin's modules and classes by their full names."""
        digests: dict[str, str] = {}
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or not any(Path(file).is_relative_to(folder) for folder in self._folders):
                continue
            for key, value in list(vars(module).items()):
                self._watch(digests, f"{name}.{key}", value)
                if isinstance(value, type) and value.__module__ == name:
                    for attribute, of_class in list(vars(value).items()):
                        self._watch(digests, f"{name}.{key}.{attribute}", of_class)
        return digests

    def _watch(self, digests: dict[str, str], name: str, value: object) -> None:
        plain = isinstance(value, int | float | str | bytes | list | tuple | dict | set | np.ndarray) or value is None
        if name.rpartition(".")[2].startswith("__") or not plain:
            return
        try:
            digests[name] = hashlib.sha256(pickle.dumps(value)).hexdigest()
        except Exception:  # contains a function or a file: identified by its repr
            digests[name] = repr(value)


def begin_anew(root: Path) -> None:
    """Delete files of a case that can't be resumed. Files that were in W before it began stay."""
    root.mkdir(parents=True, exist_ok=True)
    note = root / _FOLDER / "before.json"
    if not note.exists():
        write_json(note, sorted(path.name for path in root.iterdir() if path.name != _FOLDER))
        return
    stays = {_FOLDER, *json.loads(note.read_text(encoding="utf-8"))}
    for path in root.iterdir():
        if path.name not in stays:
            _remove(path)
    (root / _FOLDER / _STANDING).unlink(missing_ok=True)


def take_place(path: Path, target: Path) -> None:
    """Move the file or folder `path` to `target`, replacing what is there."""
    if target.exists():
        _remove(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, target)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def write_outcome(root: Path, numbers: Mapping[str, Any], objects: Mapping[str, Any]) -> None:
    """Store the outcome of a case, `numbers` last as a mark of completeness. Raises errors of pickle."""
    for name, value in objects.items():
        write_atomic(root / _FOLDER / f"{name}.pickle", pickle.dumps(value))
    write_json(root / _FOLDER / _OUTCOME, numbers)
    (root / _FOLDER / _STANDING).unlink(missing_ok=True)


def read_outcome(folder: Path | str) -> Mapping[str, Any] | None:
    """Return the numbers of a finished case; None if it has not finished."""
    path = Path(folder, _FOLDER, _OUTCOME)
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def read_pickle(folder: Path | str, name: str) -> object:
    """Return an object of the outcome, which may run authors' code.

    Only for the process of a case or of its metrics.
    """
    return pickle.loads(Path(folder, _FOLDER, f"{name}.pickle").read_bytes())
