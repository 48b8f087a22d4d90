"""Folders for temporary files that are removed after their process ends, in whatever way."""

import contextlib
import multiprocessing.process
import os
import platform
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from ianvs.base.errors import IanvsError

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks: folders of a killed supervisor remain
    fcntl = None


_PREFIX, _HOST, _SHORT = "ianvs-", ".host", "/tmp"
_LONGEST = 107  # maximum length of a socket's path
# Length of the name of a socket that multiprocessing creates.
_INSIDE = len("/ianvs-12345678/12345/pymp-12345678/listener-12345678")


def own_folder(above: str | None = None) -> Path:
    """Create a folder below `above`, or the temporary folder, locked while this process or a fork of it lives."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        (folder / _HOST).write_text(platform.node())
        if fcntl is None:
            return folder
        try:
            handle = os.open(folder, os.O_RDONLY)  # never closed
        except FileNotFoundError:
            continue  # removed by another process before it was locked
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        except OSError:
            return folder  # no locks here, so that no other process can lock and remove it
        if folder.is_dir():
            return folder
        os.close(handle)


def sweep() -> None:
    """Remove such folders of this user and host whose processes have ended."""
    if fcntl is None:
        return
    for folder in {path for above in (tempfile.gettempdir(), _SHORT) for path in Path(above).glob(f"{_PREFIX}*")}:
        with contextlib.suppress(OSError):
            if (folder / _HOST).read_text() != platform.node():
                continue
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.getuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def socket_folder() -> Path | None:
    """Return a short folder for the sockets of tasks if the temporary folder is too long for those of multiprocessing.

    None if it is not. Raises IanvsError if there is no short one.
    """
    if len(tempfile.gettempdir()) + _INSIDE <= _LONGEST:
        return None
    try:
        return own_folder(_SHORT)
    except OSError as error:
        raise IanvsError(
            f"the folder for temporary files, {tempfile.gettempdir()}, is too long for sockets between processes, and "
            f"{_SHORT} can't be written: {error.strerror}. Set TMPDIR to a folder of at most {_LONGEST - _INSIDE} "
            "characters.",
            code="unwritable-file",
        ) from None


def own_folders(number: int, folder: Path, sockets: Path | None) -> tuple[str, str | None]:
    """Create folders of a task below those of its engine: for temporary files, and for sockets."""
    made = [path and path / str(number) for path in (folder, sockets)]
    for path in filter(None, made):
        path.mkdir(mode=0o700)
    return str(made[0]), None if made[1] is None else str(made[1])


def remove_folders(folders: Iterable[Path | str | None]) -> None:
    """Remove folders of a task or an engine with their content."""
    for folder in folders:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def use_folders(folder: str, sockets: str | None) -> None:
    """Make this process, and those that it starts, keep temporary files in `folder`.

    Args:
        folder: An existing folder.
        sockets: Folder for multiprocessing's sockets, as in Python 3.14; None: in `folder`, too.
    """
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    if sockets is not None:
        multiprocessing.process.current_process()._config["tempdir"] = sockets  # type: ignore[attr-defined]
