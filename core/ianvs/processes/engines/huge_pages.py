"""Cheap forks: a process that will be forked often keeps its memory in few large pages.

A fork copies an entry of the page table for every page that its parent has written. A process with torch has a hundred
thousand of them; in huge pages (2 MiB, Linux 6.1 and later) it has some hundreds, and a fork costs about a third.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

__all__ = ["MANY", "gather"]

MANY = 8
"""Tasks whose forks, about nine each, save the second that `gather` takes."""

_COLLAPSE = 25  # MADV_COLLAPSE of Linux's <asm-generic/mman-common.h>
_HUGE = 2 << 20


@cache
def gather() -> None:
    """Move this process's own memory into huge pages, once; where the kernel can't, all stays as it is."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
        advise = ctypes.CDLL(None).madvise
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
