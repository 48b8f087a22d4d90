"""testenv.yaml: the data, how they arrive, and the metrics."""

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import InitVar, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from ianvs.base.errors import closest
from ianvs.base.former_names import former_names
from ianvs.config.models.base import ConfigProblem, FilePath, Name, at, entries, leaves, repeated
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.models.sample_rules import conflicting_sources
from ianvs.config.models.samples import DatasetSpec, Words
from ianvs.config.models.section import (
    NULL_IS_ABSENT,
    ByYamlType,
    NamedSpec,
    NoKey,
    NotEmpty,
    Options,
    PlacedSpec,
    Several,
    Spec,
)
from ianvs.config.strict_yaml import Steps

COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "=": operator.eq,  # in our files, and in Ianvs's
}
"""Functions by the `operator` of a `model_eval`."""


@former_names(of="score")
@dataclass(frozen=True)
class MetricSpec(NamedSpec):
    """A column of the leaderboard; further keys are the metric's options."""

    name: Annotated[Name, Field(description="the metric's name")]
    url: FilePath = None  # the file that defines it; None for a built-in metric
    # Which score a metric over a score matrix is computed from; None: the first score of the testenv.
    score: Annotated[Name | None, Field(validation_alias="of")] = None
    options: Options = field(default_factory=dict)
    contract: Annotated[str, NoKey] = NATIVE  # which defines the name
    # Columns from the dataset's settings, such as `hierarchy`, which identify the metric.
    dataset_columns: Annotated[Mapping[str, Any], NoKey] = field(default_factory=dict)


@dataclass(frozen=True)
class ScenarioSpec(NamedSpec):
    """How the data arrive and what a learner may see; further keys are options, checked by the scenario."""

    name: Annotated[Name, Field(description="the scenario's name")]
    options: Options = field(default_factory=dict)
    url: FilePath = None  # the author's file that defines it; None for a built-in or installed scenario
    file: InitVar[FilePath] = None  # an option that is a path

    def __post_init__(self, file: Path | None) -> None:
        if file is not None:
            object.__setattr__(self, "options", {**self.options, "file": str(file)})


@dataclass(frozen=True)
class EvaluationTaskSpec(NamedSpec):
    """An evaluation task by name; `url` is an author's file."""

    has_options: ClassVar = False

    name: Annotated[Name, Field(description="the evaluation task's name")]
    url: FilePath = None


@dataclass(frozen=True)
class _ModelMetric(Spec):
    """The metric of the gate."""

    name: Annotated[Name, Field(description="the name of the metric that decides")]
    url: FilePath = None
    mode: str | None = None


@dataclass(frozen=True, kw_only=True)
class GateSpec(PlacedSpec):
    """Ianvs's `model_eval`: the model trained in a round replaces the current one only if this condition holds.

    "relative": score(new) - score(current) `operator` threshold. "absolute": score(new) `operator` threshold.
    """

    metric: Annotated[
        MetricSpec,
        ByYamlType(mapping=_ModelMetric),
        AfterValidator(lambda given: MetricSpec(given.name, given.url)),
        Field(validation_alias="model_metric", description="the metric that decides, with its name"),
    ]
    threshold: float = 0.9
    operator: Literal[">", ">=", "<", "<=", "=="] = ">"
    mode: Literal["relative", "absolute"] = "relative"


@dataclass(frozen=True)
class BudgetSpec(Spec):
    """What a learner may use in a round; None: no limit.

    Attributes:
        memory_samples: Samples in its memory.
        memory_bytes: Size of its memory.
        passes: Passes over the round's data.
        round_seconds: Training time of a round.
        stream_seconds: Time for predictions and learning in a prequential exam.
        tokens: Tokens of a model, as its author counts them.
        calls: Calls of a model, as its author counts them.
        over: "fail" ends the case, "mark" marks its row.
    """

    memory_samples: Annotated[int, Field(ge=0)] | None = None
    memory_bytes: Annotated[int, Field(ge=0)] | None = None
    passes: Annotated[int, Field(ge=1)] | None = None
    round_seconds: Annotated[float, Field(gt=0)] | None = None
    stream_seconds: Annotated[float, Field(gt=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    calls: Annotated[int, Field(ge=0)] | None = None
    over: Literal["fail", "mark"] = "fail"


@dataclass(frozen=True)
class PrequentialSpec(Spec):
    """A prequential exam: each chunk of a stream is predicted before its labels are revealed.

    Attributes:
        feedback: What is revealed.
        delay: Chunks between prediction and feedback.
        score: The metric for a single prediction; None: that of the data type.
        near_future: Shifts in chunks at which copies predict ahead.
        near_future_every: Chunks between two such predictions.
        second_pass: Whether a copy of the last model predicts the whole stream again.
        stream_cost: Relative complexity of every algorithm; None: as its file says.
        window: Samples of a windowed mean.
        start: Samples that count as the beginning of a visit.
        r_max: The greatest possible mean score.
    """

    feedback: Literal["label", "correctness", "score", "text"] = "label"
    delay: Annotated[int, Field(ge=0)] = 0
    score: Name | None = None
    near_future: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(strict=False)] = ()
    near_future_every: Annotated[int, Field(ge=1)] = 1
    second_pass: bool = False
    stream_cost: Annotated[int, Field(ge=1)] | None = None
    window: Annotated[int, Field(ge=1)] = 50
    start: Annotated[int, Field(ge=1)] = 5
    r_max: Annotated[float, Field(gt=0)] = 1.0

    def cost(self, stated: int) -> int:
        """Return the relative complexity of an algorithm whose file says `stated`."""
        return stated if self.stream_cost is None else self.stream_cost


def _prequential(given: PrequentialSpec | bool) -> PrequentialSpec | None:
    """Convert `true` to all defaults, `false` to None."""
    return (PrequentialSpec() if given else None) if isinstance(given, bool) else given


def _one_list(groups: dict[str, list[MetricSpec]]) -> tuple[MetricSpec, ...]:
    return tuple(metric for group in groups.values() for metric in group)


Metrics = Annotated[
    tuple[MetricSpec, ...],
    ByYamlType(
        list=Several[MetricSpec],
        mapping=Annotated[dict[str, list[MetricSpec]], NotEmpty, AfterValidator(_one_list)],
    ),
]
"""A list of metrics, or several such lists by the name of a group."""


@former_names(settings="contract_settings")
@dataclass(frozen=True, kw_only=True)
class TestEnvSpec(PlacedSpec):
    """testenv.yaml: one exam. `name` distinguishes the exams of a job."""

    __test__: ClassVar = False  # the name is not an invitation to pytest
    without_effect: ClassVar = {
        "round": "'incremental_rounds' is the number of rounds",
        "client_number": "",
        "use_gpu": "'device' in the job file chooses",
        "gpu_num": "",
        "if_mode_llm": "",
        "backend": "",
        "task_size": "",
        "hard_example_mining_mode": "",
    }

    dataset: Annotated[DatasetSpec, Field(description="the name of a built-in source, or files")]
    metrics: Annotated[Metrics, Field(description="a list of metrics such as '- name: accuracy'")]
    scenario: ScenarioSpec | None = None
    using: InitVar[Words] = ()  # belongs to the dataset; accepted here, too, as in Ianvs (`MOVED_KEYS`)
    incremental_rounds: Annotated[int, Field(ge=1)] | None = None
    gate: Annotated[GateSpec | None, Field(validation_alias="model_eval")] = None
    name: Annotated[Name, NULL_IS_ABSENT] = ""
    budget: BudgetSpec | None = None
    prequential: Annotated[
        PrequentialSpec | None,
        ByYamlType(mapping=PrequentialSpec, truth=bool),
        AfterValidator(_prequential),
        NULL_IS_ABSENT,
    ] = None
    linear_probe: bool = False  # whether a linear probe is fitted after every round
    task_scores: bool = False  # whether scores of all classes are evaluated under the mask of a task
    teacher_forced: bool = False  # whether the likelihood of the true replies is evaluated
    evaluation_tasks: Several[EvaluationTaskSpec] = ()  # further ones
    questions: InitVar[Several[EvaluationTaskSpec]] = ()  # the former name of evaluation_tasks (`MOVED_KEYS`)
    contract_settings: Annotated[Any, NoKey] = None  # settings of a non-native contract
    file: Annotated[Path, NoKey] = Path()

    @property
    def all_evaluation_tasks(self) -> tuple[EvaluationTaskSpec, ...]:
        """All evaluation tasks besides predictions."""
        names = ("linear_probe", "task_scores", "teacher_forced")
        return (*(EvaluationTaskSpec(name) for name in names if getattr(self, name)), *self.evaluation_tasks)

    def with_dataset(self, dataset: DatasetSpec) -> Self:
        """Return a copy with another dataset, and metrics for its columns."""
        columns = dataset.columns_of_settings
        metrics = tuple(replace(metric, dataset_columns=columns) for metric in self.metrics)
        gate = self.gate and replace(self.gate, metric=replace(self.gate.metric, dataset_columns=columns))
        return replace(self, dataset=dataset, metrics=metrics, gate=gate)

    @staticmethod
    def conflicts(data: object) -> Iterator[ConfigProblem]:
        """Find keys that exclude each other or have no effect."""
        yield from conflicting_sources(data)
        if isinstance(at(data, "metrics"), dict):
            message = "metrics in groups are read as one list; the groups have no effect."
            yield ConfigProblem(message, ("metrics",), code="no-effect", warning=True)
        mode: Steps = ("model_eval", "model_metric", "mode")
        if (given := at(data, *mode)) not in (None, "none", "no-inference"):
            message = f"mode '{given}' has no effect yet; the metric is computed as ever."
            yield ConfigProblem(message, mode, code="no-effect", warning=True)
        if at(data, "prequential") not in (None, False):
            for key in ("model_eval", "linear_probe"):
                if at(data, key) not in (None, False):
                    yield ConfigProblem(
                        f"'{key}' looks at a round's data before they are answered, and `prequential` asks first. Keep "
                        "one of them.",
                        (key,),
                        code="conflicting-keys",
                    )
        metrics = list(leaves(data, "metrics"))
        named_scores = (
            ((*path, "name"), metric if isinstance(metric, str) else at(metric, "name"), at(metric, "of"))
            for path, metric in metrics
        )
        named = (
            (path, f"{name} of {score}" if score else name)
            for path, name, score in named_scores
            if isinstance(name, str)
        )
        yield from repeated(named, "metric '{}' is given twice. Keep one.")
        for path, _ in metrics:
            keys = {str(where[-1]): where for where, _ in entries(data, *path)}
            absent = [key for key in ("url", "of") if key not in keys]
            for key in keys.keys() - MetricSpec.known_keys().keys():
                if hint := closest(key, absent):
                    yield ConfigProblem(f"unknown key '{key}' in metrics.{hint}", keys[key], code="unknown-key")
