"""Conditions of `--only` and `--rerun`: which cases they mean."""

from collections.abc import Mapping, Sequence

from ianvs.base.types import TestCase


def fits(case: TestCase, wanted: str, status: str | None = None) -> bool:
    """Return whether `--only` and `--rerun` mean the case by `wanted`: conditions separated by commas, all of which
    must hold; with several such lists, separated by semicolons, those of one.

    A condition is `name=value` (algorithm, seed, testenv, a hyperparameter, status where that is told), `seed 0`, an
    algorithm's name, the beginning of a case's id, or a row as reports print it: "ewc (strength=100)". Any of them may
    have a comma in it.
    """
    facts = {"algorithm": case.algorithm, "seed": case.seed, "testenv": case.testenv, **case.hyperparameters}
    if status is not None:
        facts["status"] = status
    return any(_all_hold(case, facts, conditions.split(",")) for conditions in alternatives(wanted))


def alternatives(wanted: str) -> Sequence[str]:
    """Return the lists of conditions, of which one has to hold as a whole."""
    return [part.strip() for part in wanted.split(";") if part.strip()] or [wanted]


def _all_hold(case: TestCase, facts: Mapping[str, object], parts: Sequence[str]) -> bool:
    """Return whether the parts can be put together, with their commas, to conditions that all hold."""
    return not parts or any(
        _holds(case, facts, ",".join(parts[:count]).strip()) and _all_hold(case, facts, parts[count:])
        for count in range(1, len(parts) + 1)
    )


def _holds(case: TestCase, facts: Mapping[str, object], condition: str) -> bool:
    name, equals, value = condition.partition("=")
    if condition in ("", case.algorithm) or (equals and name in facts and _same(facts[name], value)):
        return True
    if condition.startswith("seed "):
        return condition == f"seed {case.seed}"
    row, _, settings = condition.partition(f"{case.algorithm} (")
    if not row and settings.endswith(")"):
        return _all_hold(case, facts, settings[:-1].split(","))
    return len(condition) >= 4 and case.id.startswith(condition)


def _same(fact: object, value: str) -> bool:
    """As text, or as numbers: `0.001` is `1e-3`."""
    if str(fact) == value:
        return True
    try:
        return isinstance(fact, int | float) and float(value) == float(fact)
    except ValueError:
        return False
