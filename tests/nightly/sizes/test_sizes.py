"""A tenth of the sizes that people have keeps to its share of memory and disk (benchmarks/size.py; not of time)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import size

TIMED = ("CPU s", "seconds")  # told by the benchmark, and asserted by nobody: machines differ


@pytest.mark.slow
@pytest.mark.parametrize("part", size.PARTS)
def test_a_tenth_of_it_keeps_to_what_is_allowed(part: str, tmp_path: Path) -> None:
    rows = list(size.rows(part, tmp_path, 0.1))
    assert rows
    over = [
        f"{row.name}: {name} {row.figures[name]:g} of {limit:g}"
        for row in rows
        for name, limit in row.limits.items()
        if name not in TIMED and row.figures[name] > limit
    ]
    assert not over
