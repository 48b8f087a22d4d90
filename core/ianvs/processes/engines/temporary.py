"""Folders for temporary files that go with the process that owns them, however it ends."""

import contextlib
import hashlib
import os
import platform
import shutil
import tempfile
from pathlib import Path
from types import ModuleType

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks: what a killed supervisor leaves there stays
    fcntl = None


def own_folder() -> Path:
    """A new folder below the temporary one, locked by this process and those that it forks as long as one lives."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_prefix()))
        if fcntl is None:
            return folder
        try:
            handle = os.open(folder, os.O_RDONLY)  # never closed
        except FileNotFoundError:
            continue  # a sweep was faster than the lock
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        except OSError:
            return folder  # no locks here; nobody else will get one either, and sweep it
        if folder.is_dir():
            return folder
        os.close(handle)


def sweep() -> None:
    """Remove such folders of this user and host whose processes are gone."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix()}*"):
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.getuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _prefix() -> str:
    """With the host in it: several may share one folder for temporary files, and not each other's locks."""
    return f"ianvs-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"
