"""A job -> its test cases in a fixed order, and for each what is to be done and why."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from core import data
from core.config.secrets import without_secrets
from core.config.spec import AlgorithmSpec, JobSpec, MetricSpec, ModuleSpec
from core.planning.identity import algorithm_identity, exam_identity, metric_key
from core.store import CaseStore
from core.store.keys import digest
from core.types import TestCase

__all__ = ["Plan", "PlannedAlgorithm", "PlannedCase", "cells", "make_plan"]

Action = Literal["run", "resume", "score", "nothing"]


@dataclass(frozen=True)
class PlannedAlgorithm:
    """An algorithm with what its cases share."""

    spec: AlgorithmSpec
    exam_id: str
    exam: Mapping[str, Any]
    identity: Mapping[str, Any]
    identity_digest: str


@dataclass(frozen=True)
class PlannedCase:
    """A test case, its state on disk, and what `ianvs run` would do with it."""

    case: TestCase
    algorithm: PlannedAlgorithm
    state: Literal["new", "finished", "failed", "unfinished"]
    action: Action
    reason: str

    def identity(self) -> dict[str, Any]:
        """Everything that made the id, readable; secret values are not written down."""
        return {
            "exam_id": self.algorithm.exam_id,
            "exam": dict(self.algorithm.exam),
            "algorithm": dict(self.algorithm.identity),
            "hyperparameters": without_secrets(self.case.hyperparameters),
            "seed": self.case.seed,
        }


@dataclass(frozen=True)
class Plan:
    """Iterate it for the planned cases. Cases are made one by one: a plan of any size takes the same memory."""

    job: JobSpec
    algorithms: tuple[PlannedAlgorithm, ...]
    store: CaseStore
    scores: tuple[tuple[MetricSpec, str], ...] = ()  # every score to be there, and the key it is stored under

    def __len__(self) -> int:
        return sum(cells(algorithm.spec.modules) * len(self.job.seeds) for algorithm in self.algorithms)

    def __iter__(self) -> Iterator[PlannedCase]:
        for algorithm in self.algorithms:
            for case in self._cases(algorithm):
                yield self._planned(case, algorithm)

    def cases(self) -> Iterator[tuple[TestCase, PlannedAlgorithm]]:
        """The cases alone, without a look at the disk."""
        for algorithm in self.algorithms:
            for case in self._cases(algorithm):
                yield case, algorithm

    def _cases(self, algorithm: PlannedAlgorithm) -> Iterator[TestCase]:
        spec = algorithm.spec
        modules = tuple((module.type, module.name) for module in spec.modules)
        for hyperparameters in _grid(spec.modules):
            row = digest([algorithm.exam_id, algorithm.identity_digest, hyperparameters])
            for seed in self.job.seeds:
                yield TestCase(
                    id=digest([row, seed]),
                    row=row,
                    algorithm=spec.name,
                    paradigm=spec.paradigm,
                    modules=modules,
                    hyperparameters=hyperparameters,
                    seed=seed,
                )

    def _planned(self, case: TestCase, algorithm: PlannedAlgorithm) -> PlannedCase:
        status = self.store.status(case.id)
        if status == "finished":
            missing = [metric.name for metric, key in self.scores if not self.store.has_score(case.id, key)]
            if missing:
                reason = f"finished; {', '.join(missing)} to be computed from what is stored"
                return PlannedCase(case, algorithm, "finished", "score", reason)
            return PlannedCase(case, algorithm, "finished", "nothing", "finished")
        if status == "failed":
            failure = self.store.failure(case.id)
            said = f"{failure.error}: {failure.message}" if failure else "no reason is known"
            return PlannedCase(case, algorithm, "failed", "run", f"failed last time ({said.splitlines()[0]})")
        done = len(self.store.complete_rounds(case.id)) - 1 if status == "unfinished" else 0
        if done > 0:
            return PlannedCase(case, algorithm, "unfinished", "resume", f"cut off after round {done}")
        return PlannedCase(case, algorithm, "new", "run", self._why_new(case, algorithm))

    def _why_new(self, case: TestCase, algorithm: PlannedAlgorithm) -> str:
        predecessor = self.store.predecessor(case)
        before = self.store.identity(predecessor) if predecessor else None
        if before is None:
            return "never run"
        now = {"exam": algorithm.exam, "algorithm": algorithm.identity}
        return f"changed since {predecessor[:8] if predecessor else ''}: {'; '.join(_differences(before, now))}"


def make_plan(job: JobSpec) -> Plan:
    """Plan `job` against what its workspace holds. Raises ConfigError or DataError where the data can't be read."""
    from core.metrics.registry import resolve

    fingerprint = data.fingerprint(job.exam.dataset, job.workspace / "cache")
    algorithms = []
    for spec in job.algorithms:
        exam = exam_identity(job, spec, fingerprint)
        identity = algorithm_identity(job, spec)
        algorithms.append(PlannedAlgorithm(spec, digest(exam), exam, identity, digest(identity)))
    scores = tuple((metric, metric_key(metric)) for metric in scored_metrics(job) if resolve(metric).level == "score")
    return Plan(job, tuple(algorithms), CaseStore(job.workspace), scores)


def scored_metrics(job: JobSpec) -> tuple[MetricSpec, ...]:
    """The testenv's metrics, and those that they build on without naming them: BWT alone is BWT of accuracy."""
    from core.metrics.registry import resolve

    named = list(job.exam.metrics)
    levels = {metric.name: resolve(metric).level for metric in named}
    if "score" not in levels.values():
        named.insert(0, MetricSpec("accuracy"))
    for metric in job.exam.metrics:
        if metric.of is not None and metric.of not in {known.name for known in named}:
            named.append(MetricSpec(metric.of, place=metric.place))
    return tuple(named)


def cells(modules: tuple[ModuleSpec, ...]) -> int:
    """Size of the grid."""
    size = 1
    for module in modules:
        for _, values in module.grid:
            size *= len(values)
    return size


def _grid(modules: tuple[ModuleSpec, ...]) -> Iterator[dict[str, Any]]:
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


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In words, what differs between two identities of the same algorithm, hyperparameters and seed."""
    found = []
    old, new = before["algorithm"], now["algorithm"]
    files = [
        name
        for name in sorted({*old.get("source", {}), *new["source"]})
        if old.get("source", {}).get(name) != new["source"].get(name)
    ]
    if files:
        found.append(f"source {', '.join(files)}")
    found += [name for name in new if name not in ("source", "version") and old.get(name) != new[name]]
    found += [
        "data" if name == "dataset" else name
        for name in now["exam"]
        if name != "version" and before["exam"].get(name) != now["exam"][name]
    ]
    return found or ["version of ianvs's recipe"]
