"""Hyperparameters that are numbers, checked before anything is loaded."""

from ianvs.base.errors import PluginError


def at_least(least: int, **counts: object) -> None:
    """Each is a whole number of `least` or more. Raises PluginError."""
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < least:
            raise PluginError(f"{name} is {count!r}; it is a whole number, {least} or more.", code="out-of-range")


def above(least: float, **values: object) -> None:
    """Each is a number greater than `least`. Raises PluginError."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > least:
            raise PluginError(f"{name} is {value!r}; it is a number greater than {least:g}.", code="out-of-range")


def within(low: float, high: float, **values: object) -> None:
    """Each is a number from `low` to `high`, both included. Raises PluginError."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            limit = f"from {low:g} to {high:g}" if high < float("inf") else f"of {low:g} or more"
            raise PluginError(f"{name} is {value!r}; it is a number {limit}.", code="out-of-range")
