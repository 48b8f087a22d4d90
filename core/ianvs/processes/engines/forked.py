"""Functions of forked processes: running and exiting, output, file descriptors and memory."""

import ctypes
import faulthandler
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NoReturn

PARENT_DEATH_SIGNAL, CHILD_SUBREAPER = 1, 36  # PR_SET_... of prctl(2)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_... of mallopt(3)
_COLLAPSE = 25  # MADV_COLLAPSE of Linux's <asm-generic/mman-common.h>
_HUGE = 2 << 20

MESSAGE_LIMIT = 200_000  # bytes between an engine and its forkserver; a packet must fit the socket's buffer

MANY_TASKS = 72
"""Tasks whose forks save the second that `gather_pages` takes."""


def run_and_exit(life: Callable[..., None], *arguments: object) -> NoReturn:
    """Call `life` and exit, so that a forked process never returns into its parent's code.

    It ends with 0, with the code of a SystemExit, or with 1 and a traceback.
    """
    code = 1
    try:
        life(*arguments)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def prctl(option: int, value: int) -> bool:
    """Set an attribute of this process. Returns whether the kernel supports it (Linux)."""
    with suppress(AttributeError):  # pythonapi finds functions of libc, too, which the interpreter is linked with
        return bool(ctypes.pythonapi.prctl(option, value, 0, 0, 0) == 0)
    return False


def log_to(output: int) -> None:
    """Empty the standard input, and print to the descriptor `output`, which is closed: in lines, with stacks of
    segfaults.
    """
    null = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((null, output, output)):
        os.dup2(file, number)
    for file in {null, output} - {0, 1, 2}:
        os.close(file)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable(sys.stderr)


def close_all_but(fds: set[int]) -> None:
    """Close this process's files; standard input, output and error stay, too."""
    for name in os.listdir("/proc/self/fd") if Path("/proc/self/fd").is_dir() else ():  # noqa: PTH208
        if int(name) > 2 and int(name) not in fds:
            with suppress(OSError):
                os.close(int(name))


def keep_freed_memory() -> None:
    """Let this process use memory again that it has freed, where its allocator is glibc's; elsewhere nothing happens.

    By itself that gives large blocks back to the system at once, which hands them out again page by page, filled with
    zeros: for the tensors of a small convolutional network a third of the time of a training step.
    """
    with suppress(AttributeError):
        mallopt = ctypes.pythonapi.mallopt
        mallopt(_MMAP_THRESHOLD, 32 << 20)  # in bytes, the allowed maximum: larger blocks are still returned
        mallopt(_TRIM_THRESHOLD, 1 << 30)  # bytes that may stay free at the end of the heap


@cache
def gather_pages() -> None:
    """Move this process's own memory into huge pages, once, before it is forked often; where the kernel can't, nothing.

    A fork copies an entry of the page table for every page that its parent has written. A process with torch has a
    hundred thousand of them; in huge pages (2 MiB, Linux 6.1 and later) it has some hundreds, and a fork costs about a
    third.
    """
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
        advise = ctypes.pythonapi.madvise
    except (OSError, AttributeError):
        return
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in lines:
        where, rights, _, _, _, *name = line.split()
        if rights != "rw-p" or name not in ([], ["[heap]"]):
            continue
        begin, end = (int(address, 16) for address in where.split("-"))
        begin, end = -(-begin // _HUGE) * _HUGE, end // _HUGE * _HUGE
        if begin < end:
            advise(begin, end - begin, _COLLAPSE)
