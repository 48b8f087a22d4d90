"""Stores authors' source as it was when a job was planned, in folders named by their content."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from ianvs.base.digests import CHANGED_MESSAGE
from ianvs.base.errors import DamagedError
from ianvs.store.files import replace_folder
from ianvs.store.keys import digest


class CodeStore:
    """The folder `code` of a workspace, hidden from learners and other users, since source may contain secrets."""

    def __init__(self, workspace: Path) -> None:
        self._root = workspace / "code"

    def folder(self, key: str) -> Path:
        return self._root / key

    def keep(self, files: Mapping[str, bytes]) -> str:
        """Store files by their names and return the key for reading them. Existing content is not written again."""
        key = _key(files)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(self._root / ".lock"):  # another run may store it, whose cases read it already
            if self._read(key) != files:
                with replace_folder(self.folder(key)) as new:
                    for name, content in files.items():
                        (new / name).parent.mkdir(parents=True, exist_ok=True)
                        (new / name).write_bytes(content)
        return key

    def read(self, key: str) -> dict[str, bytes]:
        """Return the files stored under `key`. Raises DamagedError, or FileNotFoundError if there are none."""
        files = self._read(key)
        if not files:
            raise FileNotFoundError(f"{self.folder(key)} is gone: run the job again to make it anew")
        if _key(files) != key:
            raise DamagedError(self.folder(key), CHANGED_MESSAGE)
        return files

    def _read(self, key: str) -> dict[str, bytes]:
        folder = self.folder(key)
        files = sorted(path for path in folder.rglob("*.py") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _key(files: Mapping[str, bytes]) -> str:
    return digest({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})
