"""benchmarkingjob.yaml: which exam, which algorithms, and how the leaderboard is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from ianvs.config.models.base import (
    ByForm,
    FilePath,
    Link,
    ListForm,
    MappingForm,
    Name,
    NoEffect,
    OpenSection,
    Section,
    Slip,
    TextForm,
    entries,
    path_text,
    repeated,
)
from ianvs.config.paths import Lookup
from ianvs.config.strict_yaml import Steps

__all__ = ["Device", "Engine", "JobFile", "References"]

RESERVED = ("cases", "exams", "cache")
"""Folders of a workspace that a job's own folder must not be mistaken for."""

Device = Literal["auto", "cpu", "cuda"]


def _folder_name(name: str) -> str:
    if name.casefold() in RESERVED:
        raise ValueError(f"the name '{name}' is taken by a folder of every workspace. Choose another.")
    if name in (".", "..") or name != name.strip() or len(name.encode()) > 200:
        raise ValueError(f"'{name}' can't be the name of a folder, and a job's results get one. Choose another.")
    if bad := next((character for character in name if character in "/\\" or not character.isprintable()), None):
        raise ValueError(f"the name has {bad!r} in it, which a folder's name can't have. Leave it out.")
    return name


def _workspace(value: Any, info: ValidationInfo) -> Path:
    text = path_text(value)
    lookup: Lookup | None = info.context
    return lookup.plain(text) if lookup else Path(text)


def _one_column(entry: dict[str, Any]) -> dict[str, Any]:
    if len(entry) != 1:
        raise ValueError("an entry of sort_by names one metric. Begin each metric on a line of its own with '- '.")
    return entry


class AlgorithmLink(Section):
    """One algorithm of the job."""

    name: Name = Field(description="the algorithm's name in the leaderboard")
    url: Link = Field(description="the path of the algorithm's yaml file")


class TestObject(Section):
    """What is examined."""

    __test__ = False  # the name is not an invitation to pytest

    type: Literal["algorithms"] = "algorithms"
    algorithms: list[AlgorithmLink] = Field(min_length=1, description="a list of algorithms, each with name and url")


class Visualization(Section):
    """What is shown when the job is done."""

    mode: Literal["selected_only"] = "selected_only"
    method: Literal["print_table", "draw_heatmap_picture"] = "print_table"


class SelectedDataItem(Section):
    """The columns of the selected leaderboard."""

    paradigms: list[str] = Field(default=["all"])
    modules: list[str] = Field(default=["all"])
    hyperparameters: list[str] = Field(default=["all"])
    metrics: list[str] = Field(default=["all"])


class Rank(Section):
    """How the leaderboard is sorted, cut and saved."""

    sort_by: list[Annotated[dict[str, Literal["ascend", "descend"]], AfterValidator(_one_column)]] = Field(
        min_length=1, description="a list such as '- accuracy: descend'"
    )
    visualization: Visualization = Visualization()
    selected_dataitem: SelectedDataItem = SelectedDataItem()
    save_mode: Literal["selected_only", "selected_and_all", "selected_and_all_and_picture"] = "selected_and_all"


class Engine(OpenSection):
    """Where cases run; further keys are the engine's options."""

    name: Name = Field(description="the engine: local, inline, ray or one of the author's own")
    url: FilePath = None


class Limits(Section):
    """What a case may take before it is ended."""

    case_seconds: float | None = Field(default=None, gt=0)
    round_seconds: float | None = Field(default=None, gt=0)
    memory_mb: float | None = Field(default=None, gt=0)
    grace_seconds: float = Field(default=10.0, ge=0)
    check_seconds: float = Field(default=120.0, gt=0)


class References(Section):
    """Algorithms of the job that all others are compared with, in place of the runs that the controller would plan."""

    joint: Name | None = None
    single_task: Name | None = None


class Simulation(Section):
    """Ianvs's simulated cluster."""

    cloud_number: int | None = None
    edge_number: int | None = None
    cluster_name: str | None = None
    kubeedge_version: str | None = None
    sedna_version: str | None = None


class JobFile(Section):
    """What stands below `benchmarkingjob:`."""

    name: Annotated[Name, AfterValidator(_folder_name)] = Field(description="the name of the job's folder of results")
    testenv: Annotated[Annotated[Link, TextForm] | Annotated[list[Link], Field(min_length=1), ListForm], ByForm] = (
        Field(description="the path of the testenv file, or a list of such paths")
    )
    test_object: TestObject = Field(description="what is examined: a list of algorithms")
    rank: Rank = Field(description="how the leaderboard is sorted")
    workspace: Annotated[Path, BeforeValidator(_workspace)] = Path("./workspace")
    seeds: Annotated[list[Annotated[int, Field(ge=0, lt=2**32)]], Field(min_length=1)] = Field(default=[0])
    jobs: Annotated[int, Field(ge=1)] | None = None
    threads: int = Field(default=1, ge=1)
    device: Device = "auto"
    gpus: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] | None = None
    cases_per_gpu: int = Field(default=1, ge=1)
    limits: Limits = Limits()
    retries: int = Field(default=1, ge=0)
    fail_fast: bool = False
    references: Annotated[Annotated[Literal["auto", "none"], TextForm] | Annotated[References, MappingForm], ByForm] = (
        "auto"
    )
    engine: Annotated[Annotated[Name, TextForm] | Annotated[Engine, MappingForm], ByForm] = "local"
    simulation: Annotated[Simulation | None, NoEffect()] = None

    @staticmethod
    def conflicts(data: Any) -> Iterator[Slip]:
        """Slips that concern several keys, in `data` of any shape."""
        algorithms = (
            ((*path, "name"), link.get("name")) for path, link in _mappings(data, "test_object", "algorithms")
        )
        yield from repeated("algorithm", algorithms, "Give each its own name.")
        seeds = list(entries(data, "seeds"))
        for index, (path, seed) in enumerate(seeds):
            if isinstance(seed, int) and seed in [earlier for _, earlier in seeds[:index]]:
                yield Slip(f"seed {seed} is given twice, and would repeat the same result. Keep one.", path)
        columns = ((((*path, name)), name) for path, entry in _mappings(data, "rank", "sort_by") for name in entry)
        yield from repeated("metric", columns, "Sort by it once.", key=True)


def _mappings(data: Any, *path: str) -> Iterator[tuple[Steps, dict[str, Any]]]:
    return ((where, entry) for where, entry in entries(data, *path) if isinstance(entry, dict))
