"""Conditions of `--only` and `--rerun`, which select cases."""

from collections.abc import Mapping, Sequence

from ianvs.base.types import TestCase


def fits(case: TestCase, wanted: str, status: str | None = None) -> bool:
    """Return whether `wanted` of `--only` and `--rerun` selects the case.

    `wanted` is a comma-separated list of conditions that must all hold; of several lists, separated by semicolons, one
    must hold. A condition is `name=value` (algorithm, seed, testenv, a hyperparameter, or status if it is given), `seed
    0`, an algorithm's name, the beginning of a case's id, or a row as in reports: "ewc (strength=100)", "ewc 100".
    Conditions may contain commas.
    """
    facts = {"algorithm": case.algorithm, "seed": case.seed, "testenv": case.testenv, **case.hyperparameters}
    if status is not None:
        facts["status"] = status
    return any(_all_hold(case, facts, conditions.split(",")) for conditions in alternatives(wanted))


def alternatives(wanted: str) -> Sequence[str]:
    """Return the lists of conditions, of which one has to hold."""
    return [part.strip() for part in wanted.split(";") if part.strip()] or [wanted]


def _all_hold(case: TestCase, facts: Mapping[str, object], parts: Sequence[str]) -> bool:
    """Return whether the parts can be joined, with their commas, to conditions that all hold."""
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
    if condition.startswith(f"{case.algorithm} "):
        parts = condition.removeprefix(f"{case.algorithm} ").split(",")
        return all(_is_setting(case, part.strip()) for part in parts)
    return len(condition) >= 4 and case.id.startswith(condition)


def _is_setting(case: TestCase, text: str) -> bool:
    """Return whether a setting in a row's name, "strength 10" or a value alone, is one of the case."""
    name, _, value = text.partition(" ")
    if value and name in case.hyperparameters:
        return _same(case.hyperparameters[name], value)
    return any(_same(fact, text) for fact in case.hyperparameters.values())


def _same(fact: object, value: str) -> bool:
    """Return whether a fact equals `value` as text or as a number: `0.001` is `1e-3`."""
    if str(fact) == value:
        return True
    try:
        return isinstance(fact, int | float) and float(value) == float(fact)
    except ValueError:
        return False
