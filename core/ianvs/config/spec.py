"""What the three files say, resolved: every path absolute, every default filled in, every value typed.

All others work on these frozen dataclasses and never on yaml. `place` fields say where in which file a thing stood, so
that a check that comes later (does the path exist? is the metric known?) can point there; they take no part in
comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ianvs.base.errors import Problem
from ianvs.config.models.algorithm import AlgorithmSpec, ModuleSpec, ParadigmSpec, SplitSpec
from ianvs.config.models.job import EngineSpec, JobSettings, LimitsSpec, PublishedSpec, RankSpec
from ianvs.config.models.ranges import Range
from ianvs.config.models.samples import BackboneSpec, DatasetSpec, SourceSpec
from ianvs.config.models.search import SearchSpec, SelectSpec
from ianvs.config.models.testenv import BudgetSpec, GateSpec, MetricSpec, ScenarioSpec, TestEnvSpec
from ianvs.config.overrides import Override

__all__ = [
    "AlgorithmSpec",
    "BudgetSpec",
    "BackboneSpec",
    "DatasetSpec",
    "EngineSpec",
    "GateSpec",
    "JobSpec",
    "LimitsSpec",
    "MetricSpec",
    "ModuleSpec",
    "ParadigmSpec",
    "PublishedSpec",
    "Range",
    "RankSpec",
    "ScenarioSpec",
    "SearchSpec",
    "SelectSpec",
    "SourceSpec",
    "SplitSpec",
    "TestEnvSpec",
]


@dataclass(frozen=True, kw_only=True)
class JobSpec(JobSettings):
    """benchmarkingjob.yaml with everything that it links to."""

    name: str
    file: Path
    testenvs: tuple[TestEnvSpec, ...]
    algorithms: tuple[AlgorithmSpec, ...]
    references: Mapping[str, str] = field(default_factory=dict)  # algorithm by role: "joint", "single_task"
    published: Mapping[str, Mapping[str, PublishedSpec]] = field(default_factory=dict)  # by algorithm, by metric
    # Where the processes of plugins work, and what relative paths of theirs start from, where their contract says so.
    working_directory: Path | None = None
    overrides: tuple[Override, ...] = ()  # what the command line says in place of the files
    only: str | None = None  # conditions that the cases fulfil; None: all
    limit: int | None = None  # how many of them, from the first; None: all
    plans_references: bool = True  # whether roles that metrics need and `references` does not fill are planned
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
    problems: tuple[Problem, ...] = field(default=(), compare=False)  # what is wrong, where all could be read anyway
    unexpanded_paths: Mapping[Path, str] = field(
        default_factory=dict, compare=False
    )  # paths that files give with `${NAME}`
