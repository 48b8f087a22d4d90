"""What a forked process does with its life: it never returns into what its parent was doing."""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

__all__ = ["CHILD_SUBREAPER", "DUMPABLE", "PARENT_DEATH_SIGNAL", "live", "prctl"]

PARENT_DEATH_SIGNAL, DUMPABLE, CHILD_SUBREAPER = 1, 4, 36  # PR_SET_... of prctl(2)


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
