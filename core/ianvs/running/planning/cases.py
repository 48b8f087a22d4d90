"""Grid -> test cases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ianvs.base.secrets import without_secrets
from ianvs.base.types import REPEAT, TestCase
from ianvs.config.spec import AlgorithmSpec, ModuleSpec, TestEnvSpec
from ianvs.exam.scenarios.drawn import with_seed
from ianvs.running.inspector import ParadigmFacts
from ianvs.store.keys import digest

__all__ = ["PlannedAlgorithm", "repetition_of", "axes", "cells", "grid", "own_hyperparameters", "prefixed"]


@dataclass(frozen=True)
class PlannedAlgorithm:
    """An algorithm in one exam, with what its cases share.

    testenv_name: "" where the job has one exam only. role: of reference runs, and of repetitions (REPEAT).
    choices: hyperparameters of reference runs; None: the grid of `spec`. seed: of its cases, where each seed has an
    exam of its own, or only one is repeated; exam_group_id stands for the exams of all seeds, so that their cases are
    one row. until: the round after which its cases pause; None: they go to the end. trial: (key of a search, number)
    where they are one; settled: what the search knows of it, in words: there is nothing more to do for it.
    """

    spec: AlgorithmSpec
    paradigm: ParadigmFacts
    testenv: TestEnvSpec
    testenv_name: str
    exam_id: str
    exam: Mapping[str, Any]
    identity: Mapping[str, object]
    identity_digest: str
    role: str = ""
    choices: tuple[Mapping[str, object], ...] | None = None
    seed: int | None = None
    exam_group_id: str = ""
    until: int | None = None
    trial: tuple[str, int] | None = None
    settled: str = ""

    @property
    def testenv_for_seed(self) -> TestEnvSpec:
        """The testenv as its cases take it."""
        return self.testenv if self.seed is None else with_seed(self.testenv, self.seed)

    def seeds(self, seeds: Sequence[int]) -> Sequence[int]:
        """Those of a job's seeds that its cases have."""
        return seeds if self.seed is None else (self.seed,)

    def cases(self, seeds: Sequence[int]) -> Iterator[TestCase]:
        """Hyperparameters x seeds."""
        for hyperparameters in grid(self.spec.modules) if self.choices is None else self.choices:
            for seed in self.seeds(seeds):
                yield self.case(hyperparameters, seed)

    def case(self, hyperparameters: Mapping[str, object], seed: int) -> TestCase:
        without_seed = [
            digest([e, self.identity_digest, dict(hyperparameters)]) for e in (self.exam_id, self.exam_group_id)
        ]
        return TestCase(
            id=digest([without_seed[0], seed]),
            row=without_seed[bool(self.exam_group_id)],
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
        return {
            "exam_id": self.exam_id,
            "exam": _options_shown(self.exam, "scenario"),
            "algorithm": _options_shown(self.identity, "paradigm"),
            "hyperparameters": without_secrets(case.hyperparameters),
            "seed": case.seed,
        }

    def __len__(self) -> int:
        return cells(self.spec.modules) if self.choices is None else len(self.choices)


def repetition_of(planned: PlannedAlgorithm, repetition: int, seeds: Sequence[int]) -> PlannedAlgorithm | None:
    """The same algorithm once more with the first of the seeds, from nothing: what changes is noise, not chance."""
    if planned.seed not in (None, seeds[0]):
        return None
    identity = {**planned.identity, "repetition": repetition}
    return replace(planned, identity=identity, identity_digest=digest(identity), role=REPEAT, seed=seeds[0])


def _options_shown(facts: Mapping[str, Any], name: str) -> dict[str, object]:
    """`facts` without the secrets among the options of `name`; a source file may be called key.py."""
    return {**facts, name: facts[name] and without_secrets(facts[name])}


def cells(modules: tuple[ModuleSpec, ...]) -> int:
    """Size of the grid."""
    return math.prod(len(values) for _, values in axes(modules))


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


def axes(modules: tuple[ModuleSpec, ...]) -> Iterator[tuple[str, tuple[object, ...]]]:
    """(name, values) of each hyperparameter of the grid, as the files list them, named as in a case."""
    for prefix, module in prefixed(modules):
        yield from ((prefix + name, values) for name, values in module.grid)


def grid(modules: tuple[ModuleSpec, ...]) -> Iterator[dict[str, object]]:
    """Choices of hyperparameters, the last named one changing fastest, as the files list them."""
    constants = {prefix + name: value for prefix, m in prefixed(modules) for name, value in m.constants.items()}
    listed = list(axes(modules))
    names = [name for name, _ in listed]
    for choice in itertools.product(*(values for _, values in listed)):
        yield {**constants, **dict(zip(names, choice, strict=True))}


def prefixed(modules: tuple[ModuleSpec, ...], joint: str = "-") -> Iterator[tuple[str, ModuleSpec]]:
    """Each module with what the names of its hyperparameters begin with: see `own_hyperparameters`."""
    return (("" if module is modules[0] else f"{module.type}{joint}", module) for module in modules)
