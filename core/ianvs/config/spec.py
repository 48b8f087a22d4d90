"""What the three files say, resolved: every path absolute, every default filled in, every value typed.

All others work on these frozen dataclasses and never on yaml. `place` fields say where in which file a thing stood, so
that a check that comes later (does the path exist? is the metric known?) can point there; they take no part in
comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.config.models.job import JobSettings, LimitsSpec, RankSpec
from ianvs.config.models.samples import DatasetSpec, SourceSpec
from ianvs.config.models.testenv import BudgetSpec, GateSpec, MetricSpec, ScenarioSpec, TestEnvSpec
from ianvs.errors import Place, Problem

__all__ = [
    "AlgorithmSpec",
    "BudgetSpec",
    "DatasetSpec",
    "GateSpec",
    "JobSpec",
    "LimitsSpec",
    "MetricSpec",
    "ModuleSpec",
    "ParadigmSpec",
    "RankSpec",
    "ScenarioSpec",
    "SourceSpec",
    "SplitSpec",
    "TestEnvSpec",
]


@dataclass(frozen=True)
class SplitSpec:
    """Ianvs's `*_learning_data_setting`: how rounds are cut and which share of a round is trained on."""

    train_ratio: float = 0.8
    splitting_method: str = "default"


@dataclass(frozen=True)
class ModuleSpec:
    """One module of an algorithm: a class, and the values of its constructor's arguments to try."""

    type: str  # "basemodel", ...
    name: str  # class name or registered alias
    url: str | None  # absolute path of a python file, "package.module", or None for a built-in
    grid: tuple[tuple[str, tuple[Any, ...]], ...] = ()  # in file order: (hyperparameter, values)
    constants: Mapping[str, Any] = field(default_factory=dict)  # from other_hyperparameters; the grid wins
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)  # by hyperparameter, name, ...
    value_places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict, compare=False, repr=False)  # of a grid


@dataclass(frozen=True)
class ParadigmSpec:
    """A paradigm by name; `url` is the file or module that defines it. `options` are checked by the paradigm itself."""

    name: str
    url: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)  # by option


@dataclass(frozen=True)
class AlgorithmSpec:
    """algorithm.yaml: one student."""

    name: str
    file: Path
    paradigm: ParadigmSpec
    modules: tuple[ModuleSpec, ...]  # the base model first
    split: SplitSpec | None = None  # None: not said in the file
    initial_model: Path | str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class JobSpec(JobSettings):
    """benchmarkingjob.yaml with everything that it links to."""

    name: str
    file: Path
    testenvs: tuple[TestEnvSpec, ...]
    algorithms: tuple[AlgorithmSpec, ...]
    engine: str = "local"
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)  # algorithm by role: "joint", "single_task"
    plans_references: bool = True  # whether roles that metrics need and `references` does not fill are planned
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
