"""Stores and prints the failure of a case."""

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from ianvs.base.errors import IanvsError, PluginError
from ianvs.base.secrets import forms_of, redacted
from ianvs.base.types import Failure, FailureKind
from ianvs.processes.engines.engine import EXIT_STORAGE, Reporter
from ianvs.processes.interpreters.wire import RemoteError, error_kind, error_text
from ianvs.running.planning.case_request import UNWRITABLE, CaseRequest
from ianvs.running.session.plugin_folder import missing_file_hint
from ianvs.store import CaseStore

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG, errno.EIO)


@contextlib.contextmanager
def record_failure(store: CaseStore, request: CaseRequest, report: Reporter) -> Iterator[None]:
    """Context manager: print an exception, and store it as the failure of the case.

    Raises:
        SystemExit: With EXIT_STORAGE if that can't be written.
    """
    try:
        yield
    except Exception as error:
        with contextlib.suppress(OSError):  # the log's disk may be full
            text = traceback.format_exc() if _is_traced(error) else f"{error_kind(error)}: {error}\n"
            # The terminal, if the case has no process of its own.
            sys.stderr.write(redacted(text, forms_of(request.secrets)))
        try:
            if _is_of_storage(error, store.workspace):
                raise error
            store.fail(request.case.id, _failure(error, store, request))
        except OSError as unwritable:
            report(UNWRITABLE)
            raise SystemExit(EXIT_STORAGE) from unwritable


def _is_traced(error: Exception) -> bool:
    """Return whether the log gets a traceback: not for errors of ianvs, and a RemoteError has one already."""
    raised = error.__cause__ if isinstance(error, PluginError) and error.__cause__ is not None else error
    return not isinstance(raised, IanvsError | RemoteError)


def exceeded_memory(store: CaseStore, request: CaseRequest, taken: int) -> None:
    """Store that the case took more than its limit, `taken` bytes."""
    limit = f"limits.memory_mb: {request.memory_mb:g}"
    error = MemoryError(f"the case took {taken / 1e6:.0f} MB, more than {limit}")
    store.fail(request.case.id, _failure(error, store, request))


def _is_of_storage(error: Exception, workspace: Path) -> bool:
    """Return whether a result can't be written, as opposed to a file of the plugin."""
    if not isinstance(error, OSError) or error.errno not in _UNWRITABLE:
        return False
    if error.filename is None:  # an error of write() has no file name; other errors may come from the plugin
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Path(os.fsdecode(error.filename)).is_relative_to(workspace)


def _failure(error: Exception, store: CaseStore, request: CaseRequest) -> Failure:
    kind: FailureKind = "memory" if error_kind(error) in ("MemoryError", "OutOfMemoryError") else "exception"
    log = Path(os.path.relpath(store.log(request.case.id), store.workspace))
    text = error_text(error) + missing_file_hint(error, store.files(request.case.id), request.started_in)
    message = text or "(no message)"
    if isinstance(error, FileNotFoundError | PluginError | RemoteError) and store.status(request.case.id) is None:
        message = (
            f"the folder {store.folder(request.case.id)} was removed while the case ran; the next run does it again"
        )
    return Failure(kind=kind, error=error_kind(error), message=message, log=log)
