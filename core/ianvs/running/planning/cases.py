"""Grid -> test cases."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ianvs.base.secrets import without_secrets
from ianvs.base.types import REPEAT_ROLE, TestCase
from ianvs.config.spec import AlgorithmSpec, ModuleSpec, TestEnvSpec
from ianvs.running.inspector import ParadigmFacts
from ianvs.store.keys import digest


@dataclass(frozen=True)
class PerSeedExam:
    """An exam that one seed has for itself. group_id: of those of all seeds, whose cases are one row."""

    seed: int
    group_id: str


@dataclass(frozen=True)
class ListedCases:
    """Cases that need no search. choices: of their hyperparameters; None: the grid. role: of reference runs."""

    choices: tuple[Mapping[str, object], ...] | None = None
    role: str = ""


SEARCHED = ListedCases(())
"""No cases: those of its search's trials stand beside it. Its class is looked at, and its exam prepared."""


@dataclass(frozen=True)
class TrialCases:
    """Cases of a trial. study: the key of its search.

    seed: the one that they have; None: every one of the job's, of the trial that won. until: the next round where the
    search looks at it, after which they pause; None: they go to the end. outcome: what became of one that did not
    win, for which there is nothing more to do.
    """

    study: str
    number: int
    hyperparameters: Mapping[str, object]
    seed: int | None = None
    until: int | None = None
    outcome: str = ""


@dataclass(frozen=True)
class AcceptedCase:
    """A finished case of an earlier source that counts as one of the plan.

    Attributes:
        id: The id under which it is stored.
        source: The digests of its source files.
    """

    id: str
    source: Mapping[str, str]


@dataclass(frozen=True)
class PlannedAlgorithm:
    """An algorithm in one exam, with what its cases share.

    testenv_name: "" where the job has one exam only. drawn: None: the exam is that of all seeds. origin: where its
    cases come from. repeated: the seed whose cases run once more, from nothing; None: they are no repetition.
    accepted: by the id that a case would have, the stored one in its place.
    """

    spec: AlgorithmSpec
    paradigm: ParadigmFacts
    testenv: TestEnvSpec
    testenv_name: str
    exam_id: str
    exam: Mapping[str, Any]
    identity: Mapping[str, object]
    identity_digest: str
    drawn: PerSeedExam | None = None
    origin: ListedCases | TrialCases = ListedCases()
    repeated: int | None = None
    accepted: Mapping[str, AcceptedCase] = field(default_factory=dict)

    @property
    def role(self) -> str:
        """As TestCase.role: of reference runs, and of repetitions."""
        if self.repeated is not None:
            return REPEAT_ROLE
        return self.origin.role if isinstance(self.origin, ListedCases) else ""

    @property
    def choices(self) -> tuple[Mapping[str, object], ...] | None:
        """Hyperparameters of its cases; None: the grid of `spec`."""
        return self.origin.choices if isinstance(self.origin, ListedCases) else (self.origin.hyperparameters,)

    @property
    def trial(self) -> TrialCases | None:
        return self.origin if isinstance(self.origin, TrialCases) else None

    @property
    def until(self) -> int | None:
        """The round after which its cases pause; None: they go to the end."""
        return self.trial.until if self.trial else None

    @property
    def is_ranked(self) -> bool:
        """Whether its cases go to the end: a trial that is stopped before it is not compared with others."""
        return self.until is None and not (self.trial and self.trial.outcome)

    @property
    def seed(self) -> int | None:
        """The one seed that its cases have; None: all of the job's."""
        seed = self.trial.seed if self.trial and self.repeated is None else self.repeated
        return self.drawn.seed if seed is None and self.drawn is not None else seed

    def seeds(self, seeds: Sequence[int]) -> Sequence[int]:
        """Those of a job's seeds that its cases have."""
        return seeds if self.seed is None else (self.seed,)

    def cases(self, seeds: Sequence[int]) -> Iterator[TestCase]:
        """Hyperparameters x seeds."""
        for hyperparameters in self.hyperparameters():
            for seed in self.seeds(seeds):
                yield self.case(hyperparameters, seed)

    def hyperparameters(self) -> Iterable[Mapping[str, object]]:
        """Yield each choice of them that its cases have."""
        return grid(self.spec.modules) if self.choices is None else self.choices

    def case(self, hyperparameters: Mapping[str, object], seed: int) -> TestCase:
        chosen = dict(hyperparameters)
        without_seed = digest([self.exam_id, self.identity_digest, chosen])
        row = without_seed if self.drawn is None else digest([self.drawn.group_id, self.identity_digest, chosen])
        case_id = digest([without_seed, seed])
        return TestCase(
            id=self.accepted[case_id].id if case_id in self.accepted else case_id,
            row=row,
            algorithm=self.spec.name,
            paradigm=self.spec.paradigm.name,
            modules=tuple((module.type, module.name) for module in self.spec.modules),
            hyperparameters=hyperparameters,
            seed=seed,
            testenv=self.testenv_name,
            role=self.role,
        )

    def identity_of(self, case: TestCase) -> dict[str, object]:
        """Everything that made the id of `case`, readable; secret values are not written down."""
        accepted = next(
            (accepted_case for accepted_case in self.accepted.values() if accepted_case.id == case.id), None
        )
        identity = self.identity if accepted is None else {**self.identity, "source": accepted.source}
        return {
            "exam_id": self.exam_id,
            "exam": _options_shown(self.exam, "scenario"),
            "algorithm": _options_shown(identity, "paradigm"),
            "hyperparameters": without_secrets(case.hyperparameters),
            "seed": case.seed,
        }

    def with_source(self, source: Mapping[str, str]) -> "PlannedAlgorithm":
        """Return the same algorithm as it was when its source files had these digests."""
        identity = {**self.identity, "source": dict(source)}
        return replace(self, identity=identity, identity_digest=digest(identity), accepted={})

    def __len__(self) -> int:
        return grid_size(self.spec.modules) if self.choices is None else len(self.choices)


def repetition_of(planned: PlannedAlgorithm, repetition: int, seeds: Sequence[int]) -> PlannedAlgorithm | None:
    """Return the same algorithm once more with the first of the seeds, from nothing: what changes is noise,
    not chance.
    """
    if planned.seed not in (None, seeds[0]):
        return None
    identity = {**planned.identity, "repetition": repetition}
    return replace(planned, identity=identity, identity_digest=digest(identity), repeated=seeds[0])


def _options_shown(facts: Mapping[str, Any], name: str) -> dict[str, object]:
    """`facts` without the secrets among the options of `name`; a source file may be called key.py."""
    return {**facts, name: facts[name] and without_secrets(facts[name])}


def grid_size(modules: tuple[ModuleSpec, ...]) -> int:
    return math.prod(len(values) for _, values in grid_axes(modules))


def own_hyperparameters(hyperparameters: Mapping[str, object], kind: str, kinds: Sequence[str]) -> dict[str, object]:
    """Those that the module of type `kind` is built with, of an algorithm with modules of these `kinds`.

    The first module's carry their plain names; those of further modules the type too ("aggregation-rate"), so that two
    modules may have a hyperparameter of one name.
    """
    if kind == kinds[0]:
        others = tuple(f"{other}-" for other in kinds[1:])
        return {name: value for name, value in hyperparameters.items() if not name.startswith(others)}
    prefix = f"{kind}-"
    return {name.removeprefix(prefix): value for name, value in hyperparameters.items() if name.startswith(prefix)}


def grid_axes(modules: tuple[ModuleSpec, ...]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield (name, values) of each hyperparameter of the grid, as the files list them, named as in a case."""
    for prefix, module in prefixed(modules):
        yield from ((prefix + name, values) for name, values in module.grid)


def grid(modules: tuple[ModuleSpec, ...]) -> Iterator[dict[str, object]]:
    """Choices of hyperparameters, the last named one changing fastest, as the files list them."""
    constants = {prefix + name: value for prefix, m in prefixed(modules) for name, value in m.constants.items()}
    listed = list(grid_axes(modules))
    names = [name for name, _ in listed]
    for choice in itertools.product(*(values for _, values in listed)):
        yield {**constants, **dict(zip(names, choice, strict=True))}


def prefixed(modules: tuple[ModuleSpec, ...], joint: str = "-") -> Iterator[tuple[str, ModuleSpec]]:
    """Yield each module with what the names of its hyperparameters begin with: see `own_hyperparameters`."""
    return (("" if module is modules[0] else f"{module.type}{joint}", module) for module in modules)
