"""Marks of single parameters of a test."""

from functools import partial

import pytest

__all__ = ["slow"]

slow = partial(pytest.param, marks=pytest.mark.slow)
"""A parameter that only `.ci/nightly` tries, beside others that every run does: `[first, slow(second)]`."""
