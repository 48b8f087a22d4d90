"""Grid -> test cases."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ianvs.config.secrets import without_secrets
from ianvs.config.spec import AlgorithmSpec, ModuleSpec, TestEnvSpec
from ianvs.store.keys import digest
from ianvs.types import TestCase

__all__ = ["PlannedAlgorithm", "cells", "grid"]


@dataclass(frozen=True)
class PlannedAlgorithm:
    """An algorithm in one exam, with what its cases share.

    testenv_name: "" where the job has one exam only. role: of reference runs; choices: their hyperparameters, None: the
    grid of `spec`.
    """

    spec: AlgorithmSpec
    testenv: TestEnvSpec
    testenv_name: str
    exam_id: str
    exam: Mapping[str, Any]
    identity: Mapping[str, Any]
    identity_digest: str
    role: str = ""
    choices: tuple[Mapping[str, Any], ...] | None = None

    def cases(self, seeds: Sequence[int]) -> Iterator[TestCase]:
        """Hyperparameters x seeds."""
        for hyperparameters in grid(self.spec.modules) if self.choices is None else self.choices:
            for seed in seeds:
                yield self.case(hyperparameters, seed)

    def case(self, hyperparameters: Mapping[str, Any], seed: int) -> TestCase:
        row = digest([self.exam_id, self.identity_digest, dict(hyperparameters)])
        return TestCase(
            id=digest([row, seed]),
            row=row,
            algorithm=self.spec.name,
            paradigm=self.spec.paradigm,
            modules=tuple((module.type, module.name) for module in self.spec.modules),
            hyperparameters=hyperparameters,
            seed=seed,
            testenv=self.testenv_name,
            role=self.role,
        )

    def identity_of(self, case: TestCase) -> dict[str, Any]:
        """Everything that made the id of `case`, readable; secret values are not written down."""
        return {
            "exam_id": self.exam_id,
            "exam": dict(self.exam),
            "algorithm": dict(self.identity),
            "hyperparameters": without_secrets(case.hyperparameters),
            "seed": case.seed,
        }

    def __len__(self) -> int:
        return cells(self.spec.modules) if self.choices is None else len(self.choices)


def cells(modules: tuple[ModuleSpec, ...]) -> int:
    """Size of the grid."""
    size = 1
    for module in modules:
        for _, values in module.grid:
            size *= len(values)
    return size


def grid(modules: tuple[ModuleSpec, ...]) -> Iterator[dict[str, Any]]:
    """Choices of hyperparameters, the last named one changing fastest, as the files list them."""
    constants: dict[str, Any] = {}
    axes: list[tuple[str, tuple[Any, ...]]] = []
    for position, module in enumerate(modules):
        # The base model's hyperparameters keep their names; those of further modules carry the module's type.
        prefix = "" if position == 0 else f"{module.type}-"
        constants |= {prefix + name: value for name, value in module.constants.items()}
        axes += [(prefix + name, values) for name, values in module.grid]
    names = [name for name, _ in axes]
    for choice in itertools.product(*(values for _, values in axes)):
        yield {**constants, **dict(zip(names, choice, strict=True))}
