"""What the three files say, resolved: every path absolute, every default filled in, every value typed.

All others work on these frozen dataclasses and never on yaml. They hold no logic. `place` fields say where in
which file a thing stood, so that a check that comes later (does the path exist? is the metric known?) can point there;
they take no part in comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ianvs.errors import Place, Problem

__all__ = [
    "AlgorithmSpec",
    "DatasetSpec",
    "EngineSpec",
    "TestEnvSpec",
    "GateSpec",
    "JobSpec",
    "LimitsSpec",
    "MetricSpec",
    "ModuleSpec",
    "RankSpec",
    "ScenarioSpec",
    "SourceSpec",
    "SplitSpec",
]


@dataclass(frozen=True)
class SourceSpec:
    """One file or folder of samples."""

    path: Path
    form: str  # "index": a list of samples; "data": the samples themselves (npz, csv, jsonl, a folder of class folders)
    domain: str | None = None  # the domain of all its samples, where the file names one per path
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class DatasetSpec:
    """The data of an exam: a built-in source (`name`) or files (`train`, `test`)."""

    name: str | None = None
    train: tuple[SourceSpec, ...] = ()
    test: tuple[SourceSpec, ...] = ()
    root: Path | None = None  # where paths inside index files and torchvision's folders start
    download: bool = False
    image_size: tuple[int, int] | None = None  # height, width in pixels; None keeps each picture's own (all equal)
    # Class names in the order of their index, for all domains or for each one; None: found in the labels.
    classes: tuple[str, ...] | Mapping[str, tuple[str, ...]] | None = None
    label: str | None = None  # the label's column in a csv
    domain: str | None = None  # the column or field that names a sample's domain; None: `domain`, if there is one
    using: tuple[str, ...] = ()  # domains to use, in order; () means all
    options: Mapping[str, Any] = field(default_factory=dict)  # of a built-in source, checked by it
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)  # by yaml key


@dataclass(frozen=True)
class ScenarioSpec:
    """How the data arrive and what a learner may see. `options` are checked by the scenario itself."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    url: Path | None = None  # the author's file that defines it; None for one of ours, or an installed one
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)  # by option name


@dataclass(frozen=True)
class MetricSpec:
    """A metric by name; `url` is the file that defines it, None for a built-in."""

    name: str
    url: Path | None = None
    of: str | None = None  # for a metric over a score matrix: which score; None: the first score of the testenv
    options: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class GateSpec:
    """Ianvs's `model_eval`: the model trained in a round replaces the current one only if this holds.

    relative: score(new) - score(current) `operator` threshold; absolute: score(new) `operator` threshold.
    """

    metric: MetricSpec
    threshold: float
    operator: str  # ">", ">=", "<", "<=", "=="
    mode: str = "relative"
    place: Place | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class SplitSpec:
    """Ianvs's `*_learning_data_setting`: how rounds are cut and which share of a round is trained on."""

    train_ratio: float = 0.8
    splitting_method: str = "default"


@dataclass(frozen=True)
class BudgetSpec:
    """What a learner may use in a round; None is no limit. over: "fail" ends the case, "mark" marks its row."""

    memory_samples: int | None = None
    memory_bytes: int | None = None
    passes: int | None = None
    round_seconds: float | None = None
    over: str = "fail"


@dataclass(frozen=True)
class TestEnvSpec:
    """testenv.yaml: the exam paper. `name` tells it from the other exams of the job."""

    file: Path
    dataset: DatasetSpec
    metrics: tuple[MetricSpec, ...]
    scenario: ScenarioSpec | None = None
    incremental_rounds: int | None = None
    gate: GateSpec | None = None
    name: str = ""
    budget: BudgetSpec | None = None
    linear_probe: bool = False  # whether features are examined after every round
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class ModuleSpec:
    """One module of an algorithm: a class, and the values of its constructor's arguments to try."""

    type: str  # "basemodel", ...
    name: str  # class name or registered alias
    url: str | None  # absolute path of a python file, "package.module", or None for a built-in
    grid: tuple[tuple[str, tuple[Any, ...]], ...] = ()  # in file order: (hyperparameter, values)
    constants: Mapping[str, Any] = field(default_factory=dict)  # from other_hyperparameters; the grid wins
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)  # by hyperparameter, name, url
    value_places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict, compare=False, repr=False)  # of a grid


@dataclass(frozen=True)
class AlgorithmSpec:
    """algorithm.yaml: one student."""

    name: str
    file: Path
    paradigm: str
    modules: tuple[ModuleSpec, ...]
    split: SplitSpec | None = None  # None: not said in the file
    initial_model: Path | str | None = None
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class RankSpec:
    """How the leaderboard is sorted, cut and saved."""

    sort_by: tuple[tuple[str, bool], ...]  # (column, descending)
    visualization_mode: str = "selected_only"
    visualization_method: str = "print_table"
    paradigms: tuple[str, ...] = ("all",)
    modules: tuple[str, ...] = ("all",)
    hyperparameters: tuple[str, ...] = ("all",)
    metrics: tuple[str, ...] = ("all",)
    save_mode: str = "selected_and_all"
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)  # by sort_by metric name


@dataclass(frozen=True)
class LimitsSpec:
    """What a case may take before it is ended; None is no limit. The clock starts when the case is ready to begin."""

    case_seconds: float | None = None
    round_seconds: float | None = None
    memory_mb: float | None = None  # resident memory of the case's processes, 10^6 bytes
    grace_seconds: float = 10.0  # from the wish to stop (SIGTERM) to the end (SIGKILL)
    check_seconds: float = 120.0  # what importing a file of an author, or building a plugin, may take before a run


@dataclass(frozen=True)
class EngineSpec:
    """Where cases run; `url` is the author's file that defines it, None for an installed one."""

    name: str = "local"
    url: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # checked by the engine itself
    place: Place | None = field(default=None, compare=False, repr=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)  # by option name


@dataclass(frozen=True)
class JobSpec:
    """benchmarkingjob.yaml with everything that it links to."""

    name: str
    file: Path
    workspace: Path
    testenvs: tuple[TestEnvSpec, ...]
    algorithms: tuple[AlgorithmSpec, ...]
    rank: RankSpec
    seeds: tuple[int, ...] = (0,)
    engine: EngineSpec = EngineSpec()
    jobs: int | None = None  # cases at a time; None: as many as the machine's cores carry
    threads: int = 1  # CPU threads of one case: part of a case's identity, since it changes the last bits
    device: str = "auto"  # "auto", "cpu", "cuda"
    gpus: tuple[int, ...] | None = None  # indices of the cards to use; None: all that are visible
    cases_per_gpu: int = 1
    limits: LimitsSpec = LimitsSpec()
    retries: int = 1  # of a case that was killed or lost, never of one that raised
    fail_fast: bool = False
    references: Mapping[str, str] = field(default_factory=dict)  # algorithm by role: "joint", "single_task"
    plans_references: bool = True  # whether roles that metrics need and `references` does not fill are planned
    places: Mapping[str, Place] = field(
        default_factory=dict, compare=False, repr=False
    )  # "references.<role>", "device"
    warnings: tuple[Problem, ...] = field(default=(), compare=False)
