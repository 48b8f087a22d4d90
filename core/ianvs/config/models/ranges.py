"""What stands below the name of a hyperparameter: the values to try, or a range that a search draws from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from ianvs.config.models.form import Spec

_FORMS = "Write {values: [...]}, or for a search one of uniform, log_uniform, int: [low, high], or choice: [...]."

_Numbers = Annotated[list[float], Field(min_length=2, max_length=2)] | None
_Whole = Annotated[list[int], Field(min_length=2, max_length=2)] | None


@dataclass(frozen=True)
class Range:
    """Where a search draws the values of one hyperparameter from.

    It stands in a module's grid in the place of values and is no value: `planning.search_space` puts values there.
    low, high: both belong to it; None of a choice.
    """

    kind: Literal["uniform", "log_uniform", "int", "choice"]
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()

    @property
    def ends(self) -> tuple[Any, ...]:
        """Its ends, or every choice: what a constructor is asked about before anything runs."""
        return self.choices if self.kind == "choice" else (self.low, self.high)

    def __str__(self) -> str:
        if self.kind == "choice":
            return f"one of {', '.join(map(str, self.choices))}"
        return f"{self.low:g} to {self.high:g}" + (" (log)" if self.kind == "log_uniform" else "")


@dataclass(frozen=True)
class ValuesOrRange(Spec):
    """The values of one hyperparameter to try, or a range for `search`."""

    values: Annotated[list[Any] | None, Field(min_length=1, description="the list of values to try")] = None
    uniform: Annotated[_Numbers, Field(description="for a search: lowest and highest number")] = None
    log_uniform: Annotated[_Numbers, Field(description="the same, even over powers; the lowest is above 0")] = None
    whole: Annotated[_Whole, Field(validation_alias="int", description="the same, whole numbers")] = None
    choice: Annotated[list[Any] | None, Field(min_length=2, description="for a search: the list to choose from")] = None

    def __post_init__(self) -> None:
        given = self._given
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given for one hyperparameter. Keep one of them.")
        if not given:
            raise ValueError(f"there are no values. {_FORMS}")
        ((kind, value),) = given.items()
        if kind in ("values", "choice"):
            return
        low, high = value
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(f"a range goes from one finite number to another, found {low:g} and {high:g}.")
        if low >= high:
            found = f"found {low:g} and {high:g}"
            raise ValueError(f"a range begins with its lower end, {found}. Write {kind}: [low, high] with low < high.")
        if kind == "log_uniform" and low <= 0:
            raise ValueError(f"log_uniform begins above 0, found {low:g}: there is no logarithm of it. Take uniform.")

    @property
    def _given(self) -> dict[Any, Any]:
        """By key what the file gives."""
        return {name.replace("whole", "int"): value for name, value in vars(self).items() if value is not None}

    @property
    def tried(self) -> tuple[Any, ...]:
        """The values, or the one range."""
        ((kind, value),) = self._given.items()
        if kind == "values":
            return tuple(value)
        return (Range("choice", choices=tuple(value)) if kind == "choice" else Range(kind, *value),)
