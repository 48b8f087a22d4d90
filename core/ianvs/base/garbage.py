"""Switches Python's garbage collector off for code that leaves no cyclic garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Iterator[None]:
    """Context manager without garbage collection. Searching thousands of new objects takes a tenth of the time of a
    report, and a sixth of that of imports."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
