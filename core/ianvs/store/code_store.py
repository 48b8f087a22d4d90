"""Stores authors' source as it was when a job was planned, in folders named by their content."""

import hashlib
from collections.abc import Mapping

from filelock import FileLock

from ianvs.base.digests import CHANGED_MESSAGE
from ianvs.base.errors import DamagedError
from ianvs.store.files import replace_folder
from ianvs.store.folder_store import FolderStore
from ianvs.store.keys import digest


class CodeStore(FolderStore):
    """The folder `code` of a workspace, hidden from learners and other users, since source may contain secrets."""

    place = "code"

    def keep(self, files: Mapping[str, bytes]) -> str:
        """Store files by their names and return the key for reading them. Existing content is not written again."""
        key = digest({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with FileLock(self.root / ".lock"):  # another run may store it, whose cases read it already
            try:
                self.read(key)
            except (DamagedError, FileNotFoundError):
                with replace_folder(self.folder(key)) as new:
                    for name, content in files.items():
                        (new / name).parent.mkdir(parents=True, exist_ok=True)
                        (new / name).write_bytes(content)
        return key

    def read(self, key: str) -> dict[str, bytes]:
        """Return the files stored under `key`. Raises DamagedError, or FileNotFoundError if there are none."""
        folder = self.folder(key)
        paths = sorted(path for path in folder.rglob("*.py") if path.is_file())
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        if not files:
            raise FileNotFoundError(f"{folder} is gone: run the job again to make it anew")
        if digest({name: hashlib.sha256(content).hexdigest() for name, content in files.items()}) != key:
            raise DamagedError(folder, CHANGED_MESSAGE)
        return files
