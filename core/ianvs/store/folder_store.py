"""Named folders of a workspace, with a lock for each."""

from pathlib import Path

from filelock import FileLock


class FolderStore:
    """`<workspace>/<place>/<name>/`. A folder has one writer at a time: hold its `lock`."""

    place: str

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.root = workspace / self.place

    def folder(self, name: str) -> Path:
        return self.root / name

    def lock(self, name: str) -> FileLock:
        """Return the lock for writing. The operating system releases it when the process ends."""
        locks = self.root / ".locks"  # beside the folders, which may be removed
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(str(locks / f"{name}.lock"))
