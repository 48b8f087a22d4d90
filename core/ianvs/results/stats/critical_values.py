"""Critical values of simultaneous 95 % intervals, found by simulation (benchmarks/critical_values.py)."""

import json
from importlib.resources import files
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ianvs.results.stats.summary import Array

Family = Literal["all", "best"]  # for all pairs, or those with the best method

MOST_COMPARED = 50
"""Up to this many methods all pairs are compared; with more, each method is compared with the best."""

# [family][part][methods][draws]
_TABLES = json.loads((files(__package__) / "critical_values.json").read_text(encoding="utf-8"))


def critical_value(part: Literal["seeds", "samples"], methods: int, draws: ArrayLike, family: Family = "all") -> Array:
    """Return how many standard errors a simultaneous 95 % interval of a mean difference extends.

    It is linear between entries of the table. Over more draws it is that of the table's last entry. Beyond the last
    number of methods ("best") it grows with its logarithm, as between the last two.

    Args:
        part: The source of the draws: seeds, or groups of test samples.
        methods: Number of methods, 2 or more.
        draws: Paired draws. The result is nan below two.
        family: Which pairs are compared.
    """
    table = _TABLES[family][part]
    of_draws = np.array([int(n) for n in next(iter(table.values()))])
    values = np.array([list(row.values()) for row in table.values()])
    of_methods, m = np.array([float(n) for n in table]), float(methods)
    if family == "best":
        of_methods, m = np.log(of_methods), np.log(m)
    row = np.array([np.interp(m, of_methods, column) for column in values.T])
    if m > of_methods[-1]:
        row += (m - of_methods[-1]) * (values[-1] - values[-2]) / (of_methods[-1] - of_methods[-2])
    return np.where(np.asarray(draws) < of_draws[0], np.nan, np.interp(np.asarray(draws, dtype=float), of_draws, row))
