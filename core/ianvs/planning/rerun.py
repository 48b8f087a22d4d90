"""Which cases `--rerun` means, and with the same conditions `--only`."""

from __future__ import annotations

from ianvs.planning.conditions import holds
from ianvs.planning.plan import Plan, PlannedCase
from ianvs.store import StudyStore

__all__ = ["matches", "start_over"]


def matches(planned: PlannedCase, wanted: str) -> bool:
    """wanted: "all", "failed", or conditions separated by commas, all of which must hold.

    A condition is `name=value` (algorithm, seed, status, or a hyperparameter), an algorithm's name, or the beginning of
    a case's id.
    """
    if wanted == "all":
        return True
    if wanted == "failed":
        return planned.state == "failed"
    return all(_holds(planned, condition.strip()) for condition in wanted.split(",") if condition.strip())


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


def _holds(planned: PlannedCase, condition: str) -> bool:
    name, _, value = condition.partition("=")
    return value == planned.state if name == "status" else holds(planned.case, condition)
