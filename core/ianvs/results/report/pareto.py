"""The Pareto mark: rows that no other beats in score, training time and memory by more than noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ianvs.results.report.gather import RowCases
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.stats import Pairs
from ianvs.results.stats.standing import pareto_front

_TIME = ("train_cpu_seconds", "train_seconds")  # the first that is known
_MEMORY = "peak_memory_mb"
SAME_COST = MappingProxyType({**dict.fromkeys(_TIME, 0.1), _MEMORY: 0.02})
"""By cost, the share within which two are the same, where nothing is known of the machine."""


def cost_tolerance(groups: Sequence[RowCases], repeated: Sequence[RowCases]) -> dict[str, float]:
    """By cost, the share within which two are the same: of the machine, or twice the spread over repetitions."""
    found = dict(SAME_COST)
    known = {(one.case.row, one.case.algorithm): one for one in groups}
    for group in repeated:
        first = known.get((group.case.row, group.case.algorithm))
        for key in found if first is not None and group.case.seed in first.seeds else ():
            both = [first.costs[key][first.seeds.index(group.case.seed)], *group.costs[key]] if first else []
            values = [value for value in both if value]
            if len(values) > 1:
                found[key] = max(found[key], 2 * float(np.std(values, ddof=1) / np.mean(values)))
    return found


def with_pareto(
    rows: Sequence[LeaderboardRow],
    metric: str,
    higher: bool,
    pairs: Pairs | None,
    compared: Sequence[int],
    tolerance: Mapping[str, float],
) -> list[LeaderboardRow]:
    """A score is better where the two are apart; where nothing tells a spread, by any difference."""
    found = list(rows)
    ranked = [i for i, row in enumerate(rows) if row.competes and row.mean(metric) is not None]
    if len(ranked) < 2:
        return found
    scores = np.array([rows[i].mean(metric) for i in ranked], dtype=float) * (1 if higher else -1)
    better = scores[:, None] > scores
    if pairs is not None:
        place = {i: at for at, i in enumerate(ranked)}
        of = np.array([place[i] for i in compared])
        better[np.ix_(of, of)] = False
        first, second = of[pairs.first[pairs.apart]], of[pairs.second[pairs.apart]]
        better[first, second], better[second, first] = scores[first] > scores[second], scores[second] > scores[first]
    costs = np.array([_costs(rows[i]) for i in ranked])
    for at in pareto_front(scores, better, costs, [max(map(tolerance.__getitem__, _TIME)), tolerance[_MEMORY]]):
        found[ranked[at]] = replace(found[ranked[at]], pareto=True)
    return found


def _costs(row: LeaderboardRow) -> list[float]:
    """Less is better; what is not known counts the same for all."""
    return [next((mean for name in _TIME if (mean := row.cost(name)) is not None), 0.0), row.cost(_MEMORY) or 0.0]
