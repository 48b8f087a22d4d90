"""Ranges of hyperparameters, and how one configuration is selected: after a grid (`rank.select`), or by a search."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from ianvs.base.errors import InvalidValue
from ianvs.config.models.base import ConfigProblem, Name, at
from ianvs.config.models.section import PlacedSpec, Spec
from ianvs.config.strict_yaml import Steps

_FORMS = "Write {values: [...]}, or for a search one of uniform, log_uniform, int: [low, high], or choice: [...]."

_Numbers = Annotated[list[float], Field(min_length=2, max_length=2)] | None
_Whole = Annotated[list[int], Field(min_length=2, max_length=2)] | None


@dataclass(frozen=True)
class Range:
    """A range from which a search draws the values of a hyperparameter.

    It takes the place of values in a module's grid, until `planning.search_space` replaces it.

    Attributes:
        kind: The distribution.
        low: The lowest value; None for a choice.
        high: The highest value; None for a choice.
        choices: The values of a choice.
    """

    kind: Literal["uniform", "log_uniform", "int", "choice"]
    low: float | None = None
    high: float | None = None
    choices: tuple[Any, ...] = ()

    @property
    def ends(self) -> tuple[Any, ...]:
        """Both ends, or every choice: values to check with a constructor before anything runs."""
        return self.choices if self.kind == "choice" else (self.low, self.high)

    def __str__(self) -> str:
        if self.kind == "choice":
            return f"one of {', '.join(map(str, self.choices))}"
        return f"{self.low:g} to {self.high:g}" + (" (log)" if self.kind == "log_uniform" else "")


@dataclass(frozen=True)
class ValuesOrRange(Spec):
    """Values of one hyperparameter, or a range for `search`."""

    values: Annotated[list[Any] | None, Field(min_length=1, description="the list of values to try")] = None
    uniform: Annotated[_Numbers, Field(description="for a search: lowest and highest number")] = None
    log_uniform: Annotated[_Numbers, Field(description="the same, even over powers; the lowest is above 0")] = None
    whole: Annotated[_Whole, Field(validation_alias="int", description="the same, whole numbers")] = None
    choice: Annotated[list[Any] | None, Field(min_length=2, description="for a search: the list to choose from")] = None

    def __post_init__(self) -> None:
        given = self._given
        if len(given) > 1:
            raise InvalidValue(
                f"{' and '.join(given)} are given for one hyperparameter. Keep one of them.", "conflicting-keys"
            )
        if not given:
            raise InvalidValue(f"there are no values. {_FORMS}", "empty-value")
        ((kind, value),) = given.items()
        if kind in ("values", "choice"):
            return
        low, high = value
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidValue(
                f"a range goes from one finite number to another, found {low:g} and {high:g}.", "out-of-range"
            )
        if low >= high:
            bounds = f"found {low:g} and {high:g}"
            raise InvalidValue(
                f"a range begins with its lower end, {bounds}. Write {kind}: [low, high] with low < high.",
                "out-of-range",
            )
        if kind == "log_uniform" and low <= 0:
            raise InvalidValue(
                f"log_uniform begins above 0, found {low:g}: it has no logarithm. Take uniform.", "out-of-range"
            )

    @property
    def _given(self) -> dict[Any, Any]:
        """The given values by key."""
        return {name.replace("whole", "int"): value for name, value in vars(self).items() if value is not None}

    @property
    def candidates(self) -> tuple[Any, ...]:
        """The values, or the one range."""
        ((kind, value),) = self._given.items()
        if kind == "values":
            return tuple(value)
        return (Range("choice", choices=tuple(value)) if kind == "choice" else Range(kind, *value),)


@dataclass(frozen=True, kw_only=True)
class SelectSpec(PlacedSpec):
    """How one configuration of each algorithm is selected, by other results than the reported ones.

    With several seeds, "first_rounds" and "validation" use the first half of the seeds (a search: the first seed),
    which is not reported.

    Attributes:
        by: What decides: the first `rounds` rounds; a validation `share` of every test set; the first half of the
            seeds; or another testenv of the job, called `exam`.
        rounds: For "first_rounds".
        share: For "validation".
        exam: For "exam".
    """

    by: Literal["first_rounds", "validation", "seeds", "exam"]
    rounds: Annotated[int, Field(ge=1)] | None = None
    share: Annotated[float, Field(gt=0, lt=1)] | None = None  # None: a quarter
    exam: Name | None = None


def _first_rung(rounds: int) -> int:
    if rounds < 2:
        reason = "after round 1 nothing can be forgotten yet"
        raise InvalidValue(
            f"the first rung is round 2 or later, found {rounds}: {reason}. Write first_rung: 2.", "out-of-range"
        )
    return rounds


@dataclass(frozen=True, kw_only=True)
class SearchSpec(PlacedSpec):
    """How hyperparameters with a range are searched.

    "random": uniform draws. "tpe": draws near good earlier trials (Bergstra et al., NeurIPS 2011). "asha": draws by
    `sampler`, and weak trials stop at rungs (successive halving; Li et al., MLSys 2020).
    """

    name: Annotated[Literal["random", "tpe", "asha"], Field(description="the way to search: random, tpe or asha")]
    trials: Annotated[int, Field(ge=1)] = 50  # of each algorithm that has a range, in each exam
    metric: Name | None = None  # None: the first metric of sort_by
    # What the search may use; None: the first half of the seeds; with one seed, all reported results.
    select: SelectSpec | None = None
    sampler: Literal["random", "tpe"] | None = None  # for asha; None: random
    first_rung: Annotated[int, AfterValidator(_first_rung)] | None = None  # for asha: a round; None: 2
    reduction: Annotated[int, Field(ge=2)] | None = None  # for asha: one in so many continues at a rung; None: 3
    batch: Annotated[int, Field(ge=1)] = 8  # trials of a wave, however many run at a time
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0  # seed of the draws


def select_problems(select: object, path: Steps) -> Iterator[ConfigProblem]:
    """Find keys of the `select` at `path` that its `by` does not use, and those that it needs."""
    by = at(select, "by")
    for key, reader in (("rounds", "first_rounds"), ("share", "validation"), ("exam", "exam")):
        if by == reader and at(select, key) is None and key != "share":
            yield ConfigProblem(f"`by: {by}` needs the key '{key}'. Add it.", (*path, "by"), code="missing-key")
        elif isinstance(by, str) and by != reader and at(select, key) is not None:
            yield ConfigProblem(
                f"'{key}' has no effect: it is of `by: {reader}`. Take it out.", (*path, key), code="conflicting-keys"
            )


def search_problems(job: object) -> Iterator[ConfigProblem]:
    """Find keys of a job's `search` that exclude each other."""
    search = at(job, "search")
    select: object = at(search, "select")
    if at(search, "name") in ("random", "tpe"):
        for key in ("sampler", "first_rung", "reduction"):
            if at(search, key) is not None:
                yield ConfigProblem(
                    f"'{key}' has no effect: it is of `name: asha`. Take it out.",
                    ("search", key),
                    code="conflicting-keys",
                )
    if at(select, "by") == "exam":
        message = "a search chooses in each exam for itself, not on another one"
        yield ConfigProblem(
            f"{message}. Choose by first_rounds, validation or seeds.",
            ("search", "select", "by"),
            code="invalid-choice",
        )
    else:
        yield from select_problems(select, ("search", "select"))
    rounds = at(select, "rounds")
    if at(select, "by") == "first_rounds" and rounds == 1:
        message = "after round 1 nothing can be forgotten yet. Choose on 2 rounds or more."
        yield ConfigProblem(message, ("search", "select", "rounds"), code="out-of-range")
    if at(job, "rank", "select") is not None:
        message = "`search` and `rank.select` both choose a configuration. Write `select` below `search`."
        yield ConfigProblem(message, ("rank", "select"), code="conflicting-keys")
