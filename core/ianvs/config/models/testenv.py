"""testenv.yaml: the data, how they arrive, and the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag

from ianvs.config.models.base import (
    ByForm,
    FilePath,
    ListForm,
    MappingForm,
    Name,
    NoEffect,
    OpenSection,
    Section,
    Slip,
    TextForm,
    at,
    described,
    entries,
    repeated,
)
from ianvs.config.models.samples import DataFiles, IndexFiles, InfoFiles, LegacyFiles, Root, conflicting_sources
from ianvs.config.strict_yaml import Steps
from ianvs.errors import closest, one_line

__all__ = ["Budget", "FileDataset", "Metric", "ModelEval", "NamedDataset", "Scenario", "TestEnvFile"]


def _words(value: Any) -> Any:
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _square(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | list):
        raise ValueError(f"image_size is a whole number or [height, width] in pixels, found {described(value)}.")
    return [value, value] if isinstance(value, int) else value


def _class_name(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Words = Annotated[list[Name], BeforeValidator(_words), Field(min_length=1)]
"""Names in a list or in one text, separated by blanks or commas."""

ImageSize = Annotated[list[Annotated[int, Field(ge=1)]], BeforeValidator(_square), Field(min_length=2, max_length=2)]
_Names = Annotated[list[Annotated[str, BeforeValidator(_class_name)]], Field(min_length=1)]
ClassNames = Annotated[
    Annotated[_Names, ListForm] | Annotated[dict[str, _Names], Field(min_length=1), MappingForm], ByForm
]
"""A list of names, or a mapping from domains to such lists."""


class FileDataset(Section):
    """A dataset in files of its own."""

    root: Root = Field(default=None, validate_default=True)  # first: paths of samples are looked for below it
    train_index: IndexFiles | None = None
    test_index: IndexFiles | None = None
    train_data: DataFiles | None = None
    test_data: DataFiles | None = None
    train_data_info: InfoFiles | None = None
    test_data_info: InfoFiles | None = None
    train_url: LegacyFiles | None = None
    test_url: LegacyFiles | None = None
    label: Name | None = None
    domain: Name | None = None
    using: Words | None = None
    image_size: ImageSize | None = None
    classes: ClassNames | None = None
    download: Annotated[bool, NoEffect("only a built-in source ('name') downloads")] = False


class NamedDataset(OpenSection):
    """A built-in source; further keys are its options."""

    name: Name = Field(description="the name of a built-in source")
    download: bool = False  # before root, which need not exist yet when the source may download
    root: Root = Field(default=None, validate_default=True)
    using: Words | None = None
    image_size: ImageSize | None = None
    classes: ClassNames | None = None


class ModelMetric(Section):
    """The metric of the gate."""

    name: Name = Field(description="the name of the metric that decides")
    url: FilePath = None
    mode: str | None = None


class ModelEval(Section):
    """The gate: a new model replaces the current one only if it holds."""

    model_metric: ModelMetric = Field(description="the metric that decides, with its name")
    threshold: float = 0.9
    operator: Literal[">", ">=", "<", "<=", "=="] = ">"
    mode: Literal["relative", "absolute"] = "relative"


class Budget(Section):
    """What a learner may use in a round."""

    memory_samples: int | None = Field(default=None, ge=0)
    memory_bytes: int | None = Field(default=None, ge=0)
    passes: int | None = Field(default=None, ge=1)
    round_seconds: float | None = Field(default=None, gt=0)
    over: Literal["fail", "mark"] = "fail"


class Metric(OpenSection):
    """A column of the leaderboard; further keys are the metric's options."""

    name: Name = Field(description="the metric's name")
    url: FilePath = None
    of: Name | None = None


class Scenario(OpenSection):
    """How data arrive; further keys are the scenario's options."""

    name: Name = Field(description="the scenario's name")
    url: FilePath = None
    file: FilePath = None


MetricEntry = Annotated[Annotated[Name, TextForm] | Annotated[Metric, MappingForm], ByForm]
Metrics = Annotated[
    Annotated[list[MetricEntry], Field(min_length=1), ListForm]
    | Annotated[dict[str, list[MetricEntry]], Field(min_length=1), MappingForm],
    ByForm,
]


def _dataset_kind(value: Any) -> str:
    return "<named>" if isinstance(value, dict) and value.get("name") is not None else "<files>"


class TestEnvFile(Section):
    """What stands below `testenv:`."""

    __test__ = False  # the name is not an invitation to pytest

    dataset: Annotated[
        Annotated[NamedDataset, Tag("<named>")] | Annotated[FileDataset, Tag("<files>")], Discriminator(_dataset_kind)
    ] = Field(description="the name of a built-in source, or files")
    metrics: Metrics = Field(description="a list of metrics such as '- name: accuracy'")
    scenario: Annotated[Annotated[Name, TextForm] | Annotated[Scenario, MappingForm], ByForm] | None = None
    using: Words | None = None
    incremental_rounds: int | None = Field(default=None, ge=1)
    model_eval: ModelEval | None = None
    name: Name | None = None
    budget: Budget | None = None
    linear_probe: bool = False
    round: Annotated[Any, NoEffect("'incremental_rounds' is the number of rounds")] = None
    client_number: Annotated[Any, NoEffect()] = None
    use_gpu: Annotated[Any, NoEffect("'device' in the job file chooses")] = None
    gpu_num: Annotated[Any, NoEffect()] = None
    if_mode_llm: Annotated[Any, NoEffect()] = None
    backend: Annotated[Any, NoEffect()] = None
    task_size: Annotated[Any, NoEffect()] = None
    hard_example_mining_mode: Annotated[Any, NoEffect()] = None

    @staticmethod
    def conflicts(data: Any) -> Iterator[Slip]:
        """Slips that concern several keys, in `data` of any shape."""
        yield from conflicting_sources(data, known=[*FileDataset.model_fields, *NamedDataset.model_fields])
        for path in _class_lists(data):
            classes = ((place, _class_name(name)) for place, name in entries(data, *path))
            yield from repeated("class", classes, "Keep one.")
        yield from _without_class_list(data)
        metrics = list(_metrics(data))
        yield from repeated("metric", (_named(path, entry) for path, entry in metrics), "Keep one.")
        for path, entry in metrics:
            yield from _misspelt_options(path, entry)


def _class_lists(data: Any) -> list[Steps]:
    """Where the lists of class names stand."""
    path = ("dataset", "classes")
    return [place for place, _ in entries(data, *path)] if isinstance(at(data, *path), dict) else [path]


def _without_class_list(data: Any) -> Iterator[Slip]:
    """Domains of `using` that a mapping of class lists leaves out."""
    lists = at(data, "dataset", "classes")
    if not isinstance(lists, dict):
        return
    for path in (("dataset", "using"), ("using",)):
        value = at(data, *path)
        words: list[tuple[Steps, Any]] = list(entries(data, *path))
        if isinstance(value, str):
            words = [(path, word) for word in _words(value)]
        for where, word in words:
            if isinstance(word, str) and word not in lists:
                hint = closest(word, lists) or f" There are lists for: {one_line(list(lists))}."
                yield Slip(f"domain '{word}' has no class list in classes.{hint}", where, key=False)


def _metrics(data: Any) -> Iterator[tuple[Steps, Any]]:
    for path, entry in entries(data, "metrics"):
        if isinstance(entry, list):  # a group
            yield from entries(data, *path)
        else:
            yield path, entry


def _named(path: Steps, entry: Any) -> tuple[Steps, Any]:
    return ((*path, "name"), entry.get("name")) if isinstance(entry, dict) else (path, entry)


def _misspelt_options(path: Steps, entry: Any) -> Iterator[Slip]:
    if not isinstance(entry, dict):
        return
    absent = [key for key in ("url", "of") if key not in entry]
    for key in entry.keys() - Metric.model_fields.keys():
        if hint := closest(key, absent):
            yield Slip(f"unknown key '{key}' in metrics.{hint}", (*path, key))
