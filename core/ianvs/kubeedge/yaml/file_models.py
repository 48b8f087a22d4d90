"""Models of testenv.yaml and algorithm.yaml under `contract: ianvs`.

They read files as normalised by `ianvs.kubeedge.yaml`: with one spelling of each key, and absolute paths. Existence of
paths is checked later, so that all missing ones are reported at once.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field

from ianvs.config.models.algorithm import (
    MODULE_TYPES,
    AlgorithmSpec,
    Hyperparameters,
    ModuleSpec,
    ParadigmSpec,
    SplitSpec,
)
from ianvs.config.models.base import ConfigProblem, Name, at, leaves, repeated
from ianvs.config.models.samples import DatasetSpec, SourceSpec, Words
from ianvs.config.models.section import NULL_IS_ABSENT, PlacedSpec, Several
from ianvs.config.models.testenv import MetricSpec, TestEnvSpec
from ianvs.kubeedge.yaml.settings import AlgorithmSettings, AnyPath, ExamSettings

PARADIGM_MODULES: Mapping[str, tuple[str, ...]] = {
    "singletasklearning": ("basemodel",),
    "incrementallearning": ("basemodel",),
    "lifelonglearning": ("basemodel",),
    "jointinference": (),  # by its mode: MINING_MODES
    "multiedgeinference": ("basemodel",),
    "federatedlearning": ("basemodel", "aggregation"),
    "federatedclassincrementallearning": ("basemodel", "aggregation"),
}
"""Ianvs's paradigms, with the required types of modules."""

MULTI_INFERENCE_MODULES = ("task_allocation", "task_remodeling", "inference_integrate")
"""Types of modules that lifelong learning needs in the mode multi-inference."""

MINING = "hard_example_mining"
"""The type of the module that selects the samples for incremental learning."""

MINING_MODES = {
    "mining-then-inference": ("edgemodel", "cloudmodel", "hard_example_mining"),
    "inference-then-mining": ("edgemodel", "cloudmodel", "hard_example_mining"),
    "self-design": ("edgemodel", "cloudmodel"),
    "mining-free": ("drafter", "verifier"),
}
"""Modes of joint inference, the first by default, with the types of modules that each needs."""

SCHEME = "inference_scheme"
SCHEMES = "ianvs.inference_schemes"
"""The type of a module with another scheme, and the entry points for schemes without a url."""

UNSUPPORTED_PARADIGMS = ("singletasklearning_acboost", "singletasklearning_tta")
"""Unsupported paradigms of Ianvs: their files are read, and refused with this reason."""

T = TypeVar("T", ExamSettings, AlgorithmSettings)

KUBEEDGE_METRICS = {
    "samples_transfer_ratio": "Samples sent on for training, of all that were answered and one more.",
    "BWT": "Ianvs's BWT: the mean gain over the model before round 1, divided by the rounds.",
    "FWT": "Ianvs's FWT: the mean gain of a part over the model before round 1, just before the part's own round.",
    "MATRIX": "The scores on every part after every round.",
    "task_avg_acc": "Mean accuracy over tasks, at the end.",
    "forget_rate": "Mean over rounds of what was lost of each item's best accuracy.",
}
"""Metrics without a `url` in Ianvs, computed from the paradigm's records, with their meaning."""

KUBEEDGE_FORMULAS = {
    "GEM_BWT": "Backward transfer (Lopez-Paz & Ranzato 2017) over the parts of the data.",
    "GEM_FWT": "Forward transfer (Lopez-Paz & Ranzato 2017) over the parts of the data.",
}
"""BWT and FWT of the literature; Ianvs's functions of these names differ."""

HUB_NAME = re.compile(r"[A-Za-z0-9][\w-]*/[A-Za-z0-9][\w.-]*")
"""The name of a model in a hub."""

PLUGIN_FILES = "ianvs.kubeedge.plugin_files:PluginFiles"
"""The source of the data."""

PARTS = ("train", "test")
ENDINGS = ("index", "data", "data_info")
"""`train_index`, `train_data`, `train_data_info` and so on; the first one that a file gives counts."""


def parser_of(path: Path) -> str:
    """Return the parser of a file of samples by its name: "metadata", "csv", "txt", "json" or "jsonl"; else ""."""
    if path.name == "metadata.json":
        return "metadata"
    kind = path.suffix.lower().removeprefix(".")
    return kind if kind in ("csv", "txt", "json", "jsonl") else ""


@dataclass(frozen=True, kw_only=True)
class _Files(PlacedSpec):
    """The files of training and test samples, which plugins get unchanged."""

    train_index: AnyPath = None
    train_data: AnyPath = None
    train_data_info: AnyPath = None
    test_index: AnyPath = None
    test_data: AnyPath = None
    test_data_info: AnyPath = None
    label: Name | None = None  # the label's column in a csv
    using: Words = ()  # the domains; Ianvs does not read it

    def spec(self) -> DatasetSpec:
        return DatasetSpec(
            name="files",
            source=PLUGIN_FILES,
            train=self._sources("train"),
            test=self._sources("test"),
            label=self.label,
            using=self.using,
            place=self.place,
            places=self.places,
        )

    def _sources(self, part: str) -> tuple[SourceSpec, ...]:
        keys = [f"{part}_{ending}" for ending in ENDINGS]
        written = ((key, getattr(self, key)) for key in keys)
        return tuple(SourceSpec(path, parser_of(path), place=self.places.get(key)) for key, path in written if path)[:1]


@dataclass(frozen=True, kw_only=True)
class _Metric(PlacedSpec):
    """A column of the leaderboard: a registered function, or one of Ianvs's six metrics."""

    name: Annotated[Name, Field(description="the metric's name")]
    url: AnyPath = None
    higher_is_better: bool | None = None  # direction of a registered function; None: unknown. Ianvs ignores this key

    def specs(self) -> Iterator[MetricSpec]:
        """Yield the metric, and that of the literature beside one with Ianvs's own formula."""
        names = [self.name, f"GEM_{self.name}"] if self.url is None else [self.name]
        place = self.places.get("name", self.place)
        for name in names if names[-1] in KUBEEDGE_FORMULAS else names[:1]:
            options = {} if self.higher_is_better is None else {"higher_is_better": self.higher_is_better}
            yield MetricSpec(name, self.url, options=options, place=place, places=self.places)


@dataclass(frozen=True, kw_only=True)
class KubeEdgeTestEnv(ExamSettings):
    """The content of `testenv:`."""

    dataset: Annotated[_Files, Field(description="the files of the samples, such as train_index and test_index")]
    metrics: Annotated[Several[_Metric], Field(description="a list of metrics such as '- name: accuracy'")]
    name: Annotated[Name, NULL_IS_ABSENT] = ""

    @staticmethod
    def conflicts(data: object) -> Iterator[ConfigProblem]:
        dataset = at(data, "dataset")
        if isinstance(dataset, dict):
            for part in PARTS:
                if not any(dataset.get(f"{part}_{ending}") for ending in ENDINGS):
                    keys = ", ".join(f"{part}_{ending}" for ending in ENDINGS[:-1])
                    message = f"the {part} data are missing: {keys} or {part}_data_info names their file."
                    yield ConfigProblem(message, ("dataset",), code="missing-data")
        metrics = (((*path, "name"), at(metric, "name")) for path, metric in leaves(data, "metrics"))
        named = ((path, name) for path, name in metrics if isinstance(name, str))
        yield from repeated(named, "metric '{}' is given twice. Keep one.")

    def spec(self) -> TestEnvSpec:
        return TestEnvSpec(
            dataset=self.dataset.spec(),
            metrics=tuple(spec for metric in self.metrics for spec in metric.specs()),
            incremental_rounds=self.incremental_rounds,
            name=self.name,
            contract_settings=_only(ExamSettings, self),
            place=self.place,
            places=self.places,
        )


@dataclass(frozen=True)
class _Module(ModuleSpec):
    """One module: a registered class, or a built-in one if there is no `url`."""

    type: Annotated[Literal[MODULE_TYPES], Field(description="what the module does, such as basemodel")]  # type: ignore[valid-type]
    name: Annotated[Name, Field(description="the name under which the class is registered")]
    url: Annotated[str | None, BeforeValidator(lambda value: value or None)] = None  # a .py file or a package's folder
    grid: Hyperparameters = ()


@dataclass(frozen=True, kw_only=True)
class KubeEdgeAlgorithm(AlgorithmSettings):
    """The content of `algorithm:`."""

    paradigm_type: Annotated[
        Literal[(*PARADIGM_MODULES, *UNSUPPORTED_PARADIGMS)],  # type: ignore[valid-type]
        Field(description="how the algorithm is examined, such as singletasklearning"),
    ]
    modules: Annotated[Several[_Module], Field(description="a list of modules, each with type, name and url")]
    contract: Literal["ianvs"] = "ianvs"
    name: Annotated[str, NULL_IS_ABSENT] = ""

    conflicts = staticmethod(AlgorithmSpec.conflicts)

    def spec(self) -> AlgorithmSpec:
        setting = self.data_setting(str(self.paradigm_type))
        return AlgorithmSpec(
            paradigm=ParadigmSpec(str(self.paradigm_type), place=self.places.get("paradigm_type")),
            modules=tuple(self.modules),
            split=None if setting is None else SplitSpec(setting.train_ratio, setting.splitting_method),
            contract="ianvs",
            contract_settings=_only(AlgorithmSettings, self),
            name=self.name,
            place=self.place,
            places=self.places,
        )


def _only(kind: type[T], given: T) -> T:
    """Return the fields of `given` that `kind` has."""
    return kind(**{each.name: getattr(given, each.name) for each in fields(kind)})
