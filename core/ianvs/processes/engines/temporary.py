"""Folders for temporary files that go with the process that owns them, however it ends."""

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
except ImportError:  # Windows has no such locks: what a killed supervisor leaves there stays
    fcntl = None


_PREFIX, _HOST, _SHORT = "ianvs-", ".host", "/tmp"
_LONGEST = 107  # bytes of a socket's path
_INSIDE = len("/ianvs-12345678/12345/pymp-12345678/listener-12345678")  # of one that multiprocessing makes in a task's


def own_folder(above: str | None = None) -> Path:
    """Return a new folder below `above`, or the temporary one, locked by this process and those that it forks as long
    as one lives.
    """
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        (folder / _HOST).write_text(platform.node())
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
    """Return a short folder for the sockets of tasks, where the temporary one is too long for those of multiprocessing.

    None: it is not. Raises IanvsError where there is no short one.
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
    """New folders of a task below those of its engine: for temporary files, and for sockets."""
    made = [path and path / str(number) for path in (folder, sockets)]
    for path in filter(None, made):
        path.mkdir(mode=0o700)
    return str(made[0]), None if made[1] is None else str(made[1])


def remove_folders(folders: Iterable[Path | str | None]) -> None:
    """Those of a task, or of an engine, with what is in them."""
    for folder in folders:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def use_folders(folder: str, sockets: str | None) -> None:
    """This process, and those that it starts, keep temporary files in `folder`.

    Args:
        folder: There already.
        sockets: Where multiprocessing keeps its sockets, as Python 3.14 does by itself; None: in `folder`, too.
    """
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    if sockets is not None:
        multiprocessing.process.current_process()._config["tempdir"] = sockets  # type: ignore[attr-defined]
