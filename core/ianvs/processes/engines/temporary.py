"""Folders for temporary files that are removed after their process ends, in whatever way."""

import contextlib
import multiprocessing.process
import os
import platform
import shutil
import tempfile
from collections.abc import Sequence
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
_INSIDE = len("/ianvs-12345678/1234567/pymp-12345678/listener-12345678")


def engine_folders() -> tuple[Path, ...]:
    """Create the folders of an engine for its tasks, and remove those of this user and host whose engines have ended.

    Returns:
        The folder for temporary files and, if the path of that is too long for the sockets of multiprocessing, a short
        one for these. Each is locked while this process or a fork of it lives.

    Raises:
        IanvsError: There is no short one.
    """
    above = {tempfile.gettempdir(), _SHORT}
    for folder in {path for each in above for path in Path(each).glob(f"{_PREFIX}*")}:
        with contextlib.suppress(OSError):
            if fcntl is None or (folder / _HOST).read_text() != platform.node():
                continue
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.getuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
    folder = _locked_folder(tempfile.gettempdir())
    if len(tempfile.gettempdir()) + _INSIDE <= _LONGEST:
        return (folder,)
    try:
        return folder, _locked_folder(_SHORT)
    except OSError as error:
        raise IanvsError(
            f"the folder for temporary files, {tempfile.gettempdir()}, is too long for sockets between processes, and "
            f"{_SHORT} can't be written: {error.strerror}. Set TMPDIR to a folder of at most {_LONGEST - _INSIDE} "
            "characters.",
            code="unwritable-file",
        ) from None


def _locked_folder(above: str) -> Path:
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


def use_folders(above: Sequence[Path]) -> None:
    """Make this process, and those that it starts, keep temporary files in folders of its own below `above`.

    They are named by its process id. above: the `engine_folders`; with a second one multiprocessing's sockets are
    there, as in Python 3.14.
    """
    folder, *sockets = [os.path.join(each, str(os.getpid())) for each in above]  # noqa: PTH118
    for path in (folder, *sockets):
        os.makedirs(path, 0o700, exist_ok=True)  # noqa: PTH103
    os.environ |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), folder)
    tempfile.tempdir = folder
    if sockets:
        multiprocessing.process.current_process()._config["tempdir"] = sockets[0]  # type: ignore[attr-defined]
