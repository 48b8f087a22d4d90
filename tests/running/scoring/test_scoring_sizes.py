"""A tenth of each size of benchmarks/size_scoring.py stays below ceilings of memory and disk."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
CEILINGS = {  # MB of memory, and of files
    "classes": (80, 1),
    "more_classes": (80, 1),
    "rounds": (80, 1),
    "long_answers": (90, 5),
    "replies": (90, 6),
}


@pytest.fixture
def benchmark_of_sizes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)  # where the processes that it starts find it, too
    return importlib.import_module("size_scoring")


@pytest.mark.slow
@pytest.mark.parametrize("row", CEILINGS)
def test_a_tenth_stays_below_its_ceilings(benchmark_of_sizes: ModuleType, tmp_path: Path, row: str) -> None:
    lines = benchmark_of_sizes.ROWS[row](tmp_path, 10)
    memory, files = (line.value for line in lines if line.unit == "MB" and "blocks" not in line.what)
    assert memory < CEILINGS[row][0]
    assert files < CEILINGS[row][1]
