"""Conditions on cases, as `--only` and `--rerun` take them."""

from __future__ import annotations

from ianvs.types import TestCase

__all__ = ["fits", "holds"]


def fits(case: TestCase, wanted: str) -> bool:
    """wanted: conditions separated by commas, all of which must hold."""
    return all(holds(case, condition.strip()) for condition in wanted.split(",") if condition.strip())


def holds(case: TestCase, condition: str) -> bool:
    """A condition is `name=value` (algorithm, seed, testenv, a hyperparameter), an algorithm's name, or the beginning
    of a case's id."""
    name, equals, value = condition.partition("=")
    if not equals:
        return condition == case.algorithm or (len(condition) >= 4 and case.id.startswith(condition))
    facts = {"algorithm": case.algorithm, "seed": case.seed, "testenv": case.testenv, **case.hyperparameters}
    return name in facts and _same(facts[name], value)


def _same(fact: object, value: str) -> bool:
    """As text, or as numbers: `0.001` is `1e-3`."""
    if str(fact) == value:
        return True
    try:
        return isinstance(fact, int | float) and float(value) == float(fact)
    except ValueError:
        return False
