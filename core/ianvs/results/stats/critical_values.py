"""How many standard errors a simultaneous 95 % interval reaches: found by simulation, benchmarks/critical_values.py."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ianvs.results.stats.bootstrap import Array

Part = Literal["seeds", "samples"]
Family = Literal["all", "best"]  # of all pairs, or of those with the best method

MOST_COMPARED = 50
"""Up to so many methods all pairs are compared; of more, each with the best alone."""

Table = Mapping[int, Mapping[int, float]]  # methods: draws: value


def _read(text: str) -> Mapping[tuple[Part, Family], Table]:
    parts: tuple[tuple[Part, str], ...] = (("seeds", "c1"), ("samples", "c2"))
    families: tuple[Family, ...] = ("all", "best")
    stored = json.loads(text)
    return {
        (part, family): {int(m): {int(n): c for n, c in row.items()} for m, row in stored[family][name].items()}
        for part, name in parts
        for family in families
    }


_TABLES = _read((files(__package__) / "critical_values.json").read_text(encoding="utf-8"))


def critical_value(part: Part, methods: int, draws: ArrayLike, family: Family = "all") -> Array:
    """Of the mean difference of so many paired `draws` (seeds, or groups of test samples) between `methods` >= 2.

    nan below two draws. Linear between entries, over more draws than the table has as over its last. Beyond the last
    number of methods ("best") it grows with their logarithm, as between the last two.
    """
    table, counts = _TABLES[part, family], np.asarray(draws, dtype=float)
    of_draws = sorted(table[min(table)])
    values = np.array([[table[m][n] for n in of_draws] for m in sorted(table)])
    of_methods = np.array(sorted(table), dtype=float)
    if family == "best":
        of_methods, m = np.log(of_methods), float(np.log(methods))
    else:
        m = float(methods)
    row = np.array([np.interp(m, of_methods, column) for column in values.T])
    if m > of_methods[-1]:
        row += (m - of_methods[-1]) * (values[-1] - values[-2]) / (of_methods[-1] - of_methods[-2])
    return np.where(counts < of_draws[0], np.nan, np.interp(counts, of_draws, row))
