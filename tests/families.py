"""Tests of one kind: some stand for all of them in the quick run, the others are slow ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

__all__ = ["family"]


def family(members: Iterable[Any], quick: int | Collection[Any] = 1) -> list[Any]:
    """Parameters of a test, the others than `quick` marked slow: so many from the first on, or those that it names."""
    found = []
    for number, one in enumerate(members):
        stays = number < quick if isinstance(quick, int) else one in quick
        values = one if isinstance(one, tuple) else (one,)
        found.append(one if stays else pytest.param(*values, marks=pytest.mark.slow))
    return found
