"""What a forked process does with its life: it never returns into what its parent was doing."""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

__all__ = ["CHILD_SUBREAPER", "DUMPABLE", "PARENT_DEATH_SIGNAL", "keep_freed_memory", "live", "prctl"]

PARENT_DEATH_SIGNAL, DUMPABLE, CHILD_SUBREAPER = 1, 4, 36  # PR_SET_... of prctl(2)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_... of mallopt(3)


def live(life: Callable[[], None]) -> NoReturn:
    """Call `life` and end the process: with 0, with the code of a SystemExit, or with 1 and a traceback."""
    code = 1
    try:
        life()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where the kernel knows it (Linux); elsewhere all goes on without."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def keep_freed_memory() -> None:
    """Let this process use memory again that it has freed, where its allocator is glibc's; elsewhere nothing happens.

    By itself that gives large blocks back to the system at once, which hands them out again page by page, filled with
    zeros: for the tensors of a small convolutional network a third of the time of a training step.
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 32 << 20)  # bytes, the most that it takes: larger blocks still come and go
        mallopt(_TRIM_THRESHOLD, 1 << 30)  # bytes that may stay free at the end of the heap
