"""Waiting for an event instead of for a time: a busy machine is slow, and only what never happens fails a test."""

import time
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which what has not happened is taken never to happen."""


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Return as soon as `condition` holds.

    Raises:
        AssertionError: It still does not after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"nothing happened within {seconds:.0f} s"
        time.sleep(0.01)
