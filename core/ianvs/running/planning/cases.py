"""Creates test cases from grids."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ianvs.base.secrets import without_secrets
from ianvs.base.types import REPEAT_ROLE, TestCase
from ianvs.config.spec import AlgorithmSpec, MetricSpec, ModuleSpec, TestEnvSpec
from ianvs.running.inspector import ParadigmFacts
from ianvs.store.keys import digest


@dataclass(frozen=True)
class PerSeedExam:
    """An exam of a single seed. group_id: common to the exams of all seeds, whose cases are one row."""

    seed: int
    group_id: str


@dataclass(frozen=True)
class TrialCases:
    """The trial that cases belong to.

    Attributes:
        study: The key of its search.
        outcome: Why a trial that did not win is not continued.
    """

    study: str
    number: int
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
    """An algorithm in one exam, with the common facts of its cases.

    Attributes:
        testenv_name: "" if the job has one exam only.
        scores: Every score that its cases need, with the key of its values.
        drawn: None: the exam is common to all seeds.
        choices: Hyperparameters of its cases; None: the grid of `spec`. () while a search lists its trials separately:
            its class is inspected, and its exam prepared.
        role: Role of its cases as in TestCase.role, for reference runs and repetitions.
        seed: The only seed of its cases; None: all of the job's.
        trial: None: its cases belong to no search.
        until: The round after which its cases pause, as a trial does; None: the last one.
        accepted: Ids of stored cases that replace a case, by the id of that case.
    """

    spec: AlgorithmSpec
    paradigm: ParadigmFacts
    testenv: TestEnvSpec
    testenv_name: str
    exam_id: str
    exam: Mapping[str, Any]
    identity: Mapping[str, Any]
    identity_digest: str
    scores: tuple[tuple[MetricSpec, str], ...] = ()
    drawn: PerSeedExam | None = None
    choices: tuple[Mapping[str, object], ...] | None = None
    role: str = ""
    seed: int | None = None
    trial: TrialCases | None = None
    until: int | None = None
    accepted: Mapping[str, AcceptedCase] = field(default_factory=dict)

    @property
    def is_ranked(self) -> bool:
        """Whether its cases run to the end; a stopped trial is not compared with others."""
        return self.until is None and not (self.trial and self.trial.outcome)

    def seeds(self, seeds: Sequence[int]) -> Sequence[int]:
        """Return those of a job's seeds that its cases have."""
        return seeds if self.seed is None else (self.seed,)

    def cases(self, seeds: Sequence[int]) -> Iterator[TestCase]:
        """Yield the cases: hyperparameters x seeds."""
        for hyperparameters in self.hyperparameters():
            for seed in self.seeds(seeds):
                yield self.case(hyperparameters, seed)

    def hyperparameters(self) -> Iterable[Mapping[str, object]]:
        """Choices of hyperparameters of its cases."""
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
        """Return everything that determines the id of `case`, readable; secret values are left out."""
        sources = {accepted.id: accepted.source for accepted in self.accepted.values()}
        scenario, paradigm = self.exam["scenario"], self.identity["paradigm"]
        source = sources.get(case.id, self.identity["source"])
        return {
            "exam_id": self.exam_id,
            # Only options have secrets: a source file may be called key.py.
            "exam": {**self.exam, "scenario": scenario and without_secrets(scenario)},
            "algorithm": {**self.identity, "source": source, "paradigm": without_secrets(paradigm)},
            "hyperparameters": without_secrets(case.hyperparameters),
            "seed": case.seed,
        }

    def with_source(self, source: Mapping[str, str]) -> "PlannedAlgorithm":
        """Return the algorithm with these digests of source files."""
        identity = {**self.identity, "source": dict(source)}
        return replace(self, identity=identity, identity_digest=digest(identity), accepted={})

    def __len__(self) -> int:
        return grid_size(self.spec.modules) if self.choices is None else len(self.choices)


def repetition_of(planned: PlannedAlgorithm, repetition: int, seeds: Sequence[int]) -> PlannedAlgorithm | None:
    """Return the algorithm with the first seed again, from scratch: differences are noise of the machine."""
    if planned.seed not in (None, seeds[0]):
        return None
    identity = {**planned.identity, "repetition": repetition}
    return replace(planned, identity=identity, identity_digest=digest(identity), seed=seeds[0], role=REPEAT_ROLE)


def grid_size(modules: tuple[ModuleSpec, ...]) -> int:
    return math.prod(len(values) for module in modules for _, values in module.grid)


def own_hyperparameters(hyperparameters: Mapping[str, object], kind: str, kinds: Sequence[str]) -> dict[str, object]:
    """Return the hyperparameters of the module of type `kind`, in an algorithm with modules of these `kinds`.

    Those of the first module have plain names, those of further modules the type as prefix ("aggregation-rate"), so
    that two modules may have a hyperparameter of one name.
    """
    if kind == kinds[0]:
        others = tuple(f"{other}-" for other in kinds[1:])
        return {name: value for name, value in hyperparameters.items() if not name.startswith(others)}
    prefix = f"{kind}-"
    return {name.removeprefix(prefix): value for name, value in hyperparameters.items() if name.startswith(prefix)}


def grid_axes(modules: tuple[ModuleSpec, ...]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yield (name, values) of each hyperparameter of the grid, in the order of the files, named as in a case."""
    for prefix, module in with_prefixes(modules):
        yield from ((prefix + name, values) for name, values in module.grid)


def grid(modules: tuple[ModuleSpec, ...]) -> Iterator[dict[str, object]]:
    """Yield choices of hyperparameters; the last named one varies fastest, in the order of the files."""
    constants: dict[str, object] = {}
    axes: dict[str, tuple[object, ...]] = {}
    for prefix, module in with_prefixes(modules):
        constants |= {prefix + name: value for name, value in module.constants.items()}
        axes |= {prefix + name: values for name, values in module.grid}
    for choice in itertools.product(*axes.values()):
        yield {**constants, **dict(zip(axes, choice, strict=True))}


def with_prefixes(modules: tuple[ModuleSpec, ...], joint: str = "-") -> Iterator[tuple[str, ModuleSpec]]:
    """Yield each module with the prefix of its hyperparameters: see `own_hyperparameters`."""
    return (("" if module is modules[0] else f"{module.type}{joint}", module) for module in modules)
