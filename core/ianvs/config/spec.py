"""The contents of the three files: every path absolute, every default filled in, every value typed.

The rest of the package works on these frozen dataclasses, never on yaml. `place` fields hold the location in the file
for later checks, such as whether a metric is known. They are ignored in comparisons.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import cast

from ianvs.base.errors import ValidationError
from ianvs.base.secrets import secrets_of, without_secrets
from ianvs.config.models.algorithm import AlgorithmSpec, ModuleSpec, ParadigmSpec, ResourcesSpec, SplitSpec
from ianvs.config.models.job import EngineSpec, GenerationSpec, JobSettings, LimitsSpec, PublishedSpec, RankSpec
from ianvs.config.models.samples import BackboneSpec, DatasetSpec, DataTypeSpec, SourceSpec
from ianvs.config.models.search import Range, SearchSpec, SelectSpec
from ianvs.config.models.testenv import (
    BudgetSpec,
    EvaluationTaskSpec,
    GateSpec,
    MetricSpec,
    PrequentialSpec,
    ScenarioSpec,
    TestEnvSpec,
)
from ianvs.config.overrides import Override

__all__ = [
    "AlgorithmSpec",
    "BudgetSpec",
    "BackboneSpec",
    "DataTypeSpec",
    "DatasetSpec",
    "EngineSpec",
    "GateSpec",
    "GenerationSpec",
    "JobSpec",
    "LimitsSpec",
    "MetricSpec",
    "ModuleSpec",
    "ParadigmSpec",
    "PrequentialSpec",
    "PublishedSpec",
    "EvaluationTaskSpec",
    "Range",
    "RankSpec",
    "ResourcesSpec",
    "ScenarioSpec",
    "SearchSpec",
    "SelectSpec",
    "SourceSpec",
    "SplitSpec",
    "TestEnvSpec",
    "resolved",
    "secrets_in",
]


@dataclass(frozen=True, kw_only=True)
class JobSpec(JobSettings):
    """benchmarkingjob.yaml with all files that it links to."""

    name: str
    file: Path
    testenvs: tuple[TestEnvSpec, ...]
    algorithms: tuple[AlgorithmSpec, ...]
    references: Mapping[str, str] = field(default_factory=dict)  # algorithm by role: "joint", "single_task"
    published: Mapping[str, Mapping[str, PublishedSpec]] = field(default_factory=dict)  # by algorithm, by metric
    # Working directory of plugin processes and base of their relative paths, for contracts that set it.
    working_directory: Path | None = None
    overrides: tuple[Override, ...] = ()  # from the command line
    only: str | None = None  # conditions that select cases; None: all
    limit: int | None = None  # number of cases, from the first; None: all
    plans_references: bool = True  # whether roles that metrics need and `references` does not fill are planned
    warnings: tuple[ValidationError, ...] = field(default=(), compare=False)
    # Errors that did not prevent reading the job.
    problems: tuple[ValidationError, ...] = field(default=(), compare=False)
    # Paths that contain `${NAME}` in the files, as they were written.
    unexpanded_paths: Mapping[Path, str] = field(default_factory=dict, compare=False)


_FIELDS_NOT_COMPARED = (
    "place",
    "places",
    "value_places",
    "warnings",
    "problems",
    "written",
    "overrides",
    "dataset_columns",
)


def resolved(job: JobSpec) -> dict[str, object]:
    """Return the settings of a job with defaults, as dicts and lists that JSON can represent; secrets are hidden.

    A grid is a mapping from hyperparameters to lists of values. Infinite numbers and nan are strings. A path that was
    written with `${NAME}` is shown with it.
    """
    overrides = {f"{override.algorithm}.{override.key}".lstrip("."): override.value for override in job.overrides}
    plain = cast("dict[str, object]", _plain(job, job.unexpanded_paths))
    settings: dict[str, object] = without_secrets(
        plain | ({"set": _plain(overrides, job.unexpanded_paths)} if overrides else {})
    )
    return settings


def secrets_in(job: JobSpec) -> frozenset[str]:
    """Return the secrets in the files of a job, and those among the variables of this process."""
    settings = cast("dict[str, object]", _plain(job, {}))
    return secrets_of(settings, environment=os.environ)


def _plain(value: object, unexpanded_paths: Mapping[Path, str]) -> object:
    if is_dataclass(value):
        names = [each.name for each in fields(value) if each.name not in _FIELDS_NOT_COMPARED]
        value = {name: dict(getattr(value, name)) if name == "grid" else getattr(value, name) for name in names}
    if isinstance(value, Mapping):
        return {str(name): _plain(item, unexpanded_paths) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, unexpanded_paths) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Path) or (isinstance(value, str) and value.startswith("/")):
        path = Path(value)
        parent_path = next((parent for parent in (path, *path.parents) if parent in unexpanded_paths), None)
        return str(
            value if parent_path is None else Path(unexpanded_paths[parent_path]) / path.relative_to(parent_path)
        )
    return value
