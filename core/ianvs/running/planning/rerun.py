"""Which cases `--rerun` means, and with the same conditions `--only`."""

from __future__ import annotations

from ianvs.running.planning.conditions import fits
from ianvs.running.planning.plan import Plan, PlannedCase
from ianvs.store import StudyStore

__all__ = ["matches", "start_over"]


def matches(planned: PlannedCase, wanted: str) -> bool:
    """wanted: "all", "failed", or conditions (`fits`)."""
    if wanted in ("all", "failed"):
        return wanted in ("all", planned.state)
    return fits(planned.case, wanted, planned.state)


def start_over(plan: Plan, wanted: str) -> int:
    """Drop what is stored of the cases that match, so that they run from the first round; how many there were.

    A search finds out again what they were worth; what it asked for after them stays.
    """
    count = 0
    trials: dict[str, set[int]] = {}
    for planned in plan:
        if planned.state != "new" and matches(planned, wanted):
            with plan.store.lock(planned.case.id):
                plan.store.reset(planned.case.id)
            count += 1
            if planned.algorithm.trial is not None:
                key, number = planned.algorithm.trial
                trials.setdefault(key, set()).add(number)
    for key, numbers in trials.items():
        StudyStore(plan.job.workspace, plan.job.name).forget(key, numbers)
    return count
