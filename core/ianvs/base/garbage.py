"""Python's search for garbage, put off where there is none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Iterator[None]:
    """For what leaves no garbage: to look through thousands of new objects for some again and again takes a tenth of a
    report, and a sixth of importing."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
