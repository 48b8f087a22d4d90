"""Conditions on cases, as `--only` and `--rerun` take them."""

from __future__ import annotations

from ianvs.base.types import TestCase

__all__ = ["fits"]


def fits(case: TestCase, wanted: str, status: str | None = None) -> bool:
    """wanted: conditions separated by commas, all of which must hold.

    A condition is `name=value` (algorithm, seed, testenv, a hyperparameter, status where that is told), an algorithm's
    name, or the beginning of a case's id.
    """
    facts = {"algorithm": case.algorithm, "seed": case.seed, "testenv": case.testenv, **case.hyperparameters}
    if status is not None:
        facts["status"] = status
    for condition in filter(None, map(str.strip, wanted.split(","))):
        name, equals, value = condition.partition("=")
        if equals and not (name in facts and _same(facts[name], value)):
            return False
        if not equals and condition != case.algorithm and not (len(condition) >= 4 and case.id.startswith(condition)):
            return False
    return True


def _same(fact: object, value: str) -> bool:
    """As text, or as numbers: `0.001` is `1e-3`."""
    if str(fact) == value:
        return True
    try:
        return isinstance(fact, int | float) and float(value) == float(fact)
    except ValueError:
        return False
