"""Asynchronous successive halving: which trials go on at which rung (Li et al., MLSys 2020, algorithm 2).

At a rung that n trials have come to, the best n // reduction go on; who is among them only later, since others came
that are worse, goes on then. Decisions are made between waves of trials, on all that is known, so that they don't
depend on how many run at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ianvs.store import Trial

__all__ = ["going_on", "rungs_of"]


def rungs_of(first: int, reduction: int, last: int) -> tuple[int, ...]:
    """first, first * reduction, ... and at the end the last round that the search may see."""
    rungs = []
    while first < last:
        rungs.append(first)
        first *= reduction
    return (*rungs, last)


def going_on(
    trials: Sequence[Trial], rungs: Sequence[int], reduction: int, higher_is_better: bool, *, at_the_end: bool = False
) -> Iterator[tuple[int, int]]:
    """(number of a trial, the rung that it is to go to) of all that go on. None of them may be on its way.

    at_the_end: no other trials will come; the best one goes on where none has come to the last rung.
    """
    sign = 1 if higher_is_better else -1
    moved = False
    for rung, above in pairwise(rungs):
        been = [trial for trial in trials if rung in trial.values]
        worth = {trial.number: value for trial in been if (value := trial.values[rung]) is not None}
        ranked = sorted(worth, key=lambda number: (-sign * worth[number], number))
        best = set(ranked[: len(been) // reduction])
        for trial in been:
            if trial.number in best and trial.goal == rung:
                moved = True
                yield trial.number, above
    last = rungs[-1]
    if not at_the_end or moved or any(trial.values.get(last) is not None for trial in trials):
        return
    known = [(trial.reached, trial) for trial in trials if not trial.failed and trial.reached]
    if known:
        far, best_of = max(known, key=lambda one: (one[0], sign * (one[1].values[one[0]] or 0.0), -one[1].number))
        yield best_of.number, rungs[rungs.index(far) + 1]
