"""A short form of benchmarks/coverage.py: how often intervals hold, and how often they separate."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[4] / "benchmarks" / "coverage.py"
DRAWS = 4_000


@pytest.fixture(scope="module")
def simulation():
    # Under a name of its own: `coverage` is what measures tests.
    spec = importlib.util.spec_from_file_location("simulated_coverage", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.mark.slow
def test_intervals_hold_in_every_cell_but_those_of_rare_collapse(simulation) -> None:
    below = {}
    for k, cell in enumerate(simulation.cells()):
        if cell.collapse or cell.gap:
            continue
        found = simulation.simulate(cell, DRAWS, seed=k)
        if min(found.covered) < simulation.LEAST:
            below[cell] = found.covered
    assert not below


def test_three_seeds_separate_what_differs_clearly(simulation) -> None:
    cell = simulation.Cell("clear", (3,) * 8, (0.01,) * 8, gap=0.05)
    found = simulation.simulate(cell, 300)
    assert found.power[0] > 0.55
    assert found.power[1] > found.power[0]


def test_a_rare_collapse_breaks_them(simulation) -> None:
    """Why the report says what so many seeds could not show."""
    cell = simulation.Cell("rare collapse", (5,) * 8, (0.01,) * 8, collapse=0.15)
    assert simulation.simulate(cell, 300).covered[0] < simulation.LEAST
