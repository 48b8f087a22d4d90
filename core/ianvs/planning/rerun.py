"""Which cases `--rerun` means."""

from __future__ import annotations

from ianvs.planning.plan import Plan, PlannedCase

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
    """Drop what is stored of the cases that match, so that they run from the first round; how many there were."""
    count = 0
    for planned in plan:
        if planned.state != "new" and matches(planned, wanted):
            with plan.store.lock(planned.case.id):
                plan.store.reset(planned.case.id)
            count += 1
    return count


def _holds(planned: PlannedCase, condition: str) -> bool:
    case = planned.case
    name, equals, value = condition.partition("=")
    if not equals:
        return condition == case.algorithm or (len(condition) >= 4 and case.id.startswith(condition))
    facts = {"algorithm": case.algorithm, "seed": case.seed, "status": planned.state, **case.hyperparameters}
    return name in facts and _same(facts[name], value)


def _same(fact: object, value: str) -> bool:
    """As text, or as numbers: `0.001` is `1e-3`."""
    if str(fact) == value:
        return True
    try:
        return isinstance(fact, int | float) and float(value) == float(fact)
    except ValueError:
        return False
