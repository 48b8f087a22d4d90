"""benchmarkingjob.yaml: exams, algorithms, and settings of the run and the leaderboard."""

from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from ianvs.base.errors import InvalidValue, Location, closest, one_line
from ianvs.config.models.base import (
    ConfigProblem,
    FilePath,
    FolderPath,
    Name,
    at,
    entries,
    repeated,
)
from ianvs.config.models.search import SearchSpec, SelectSpec, search_problems, select_problems
from ianvs.config.models.section import ByYamlType, NamedSpec, NoKey, NotEmpty, Options, PlacedSpec, Several, Spec
from ianvs.config.paths import Lookup
from ianvs.config.strict_yaml import Document, Steps

RESERVED = ("cases", "exams", "cache", "code")
"""Folders of a workspace whose names a job's folder must not have."""

Device = Literal["auto", "cpu", "cuda"]


def folder_name(name: str) -> str:
    """Return `name` if it can be the name of a folder in a workspace.

    Raises:
        ValueError: If it can't.
    """
    if name.casefold() in RESERVED:
        raise InvalidValue(f"the name '{name}' is taken by a folder of every workspace. Choose another.")
    if name in (".", "..") or name != name.strip() or len(name.encode()) > 200:
        raise InvalidValue(f"'{name}' can't be the name of a folder, and a job's results get one. Choose another.")
    if "$" in name:
        raise InvalidValue(f"the name '{name}' has a '$' in it: variables are not expanded in names. Leave it out.")
    if bad := next((character for character in name if character in "/\\" or not character.isprintable()), None):
        raise InvalidValue(f"the name has {bad!r} in it, which a folder's name can't have. Leave it out.")
    return name


def _workspace(value: object, info: "ValidationInfo[Lookup]") -> Path:
    return info.context.find(value, "new")


def _column(entry: dict[str, str]) -> tuple[str, bool]:
    if len(entry) != 1:
        raise InvalidValue(
            "an entry of sort_by names one metric. Begin each metric on a line of its own with '- '.", "wrong-length"
        )
    ((name, order),) = entry.items()
    return name, order == "descend"


@dataclass(frozen=True, kw_only=True)
class PublishedSpec(PlacedSpec):
    """A published value of a metric. `place` is where the file names the metric."""

    mean: Annotated[float, Field(allow_inf_nan=False)]
    std: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None  # over runs
    n: Annotated[int, Field(ge=2)] | None = None  # number of runs of mean and std
    margin: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None  # smaller differences are ignored
    unit: Literal["fraction", "percent"] = "fraction"  # fraction: in the unit of our column
    source: Annotated[Name, Field(description="where it is published: paper and table, or repository and commit")]

    def in_our_unit(self) -> tuple[float, float | None, float]:
        """Return (mean, std, margin) in the unit of our column. The default margin is one percentage point."""

        def ours(value: float) -> float:
            """Convert by decimal digits: 99.4 / 100 is 0.9940000000000001 in binary."""
            return float(Decimal(str(value)) / 100) if self.unit == "percent" else value

        margin = 0.01 if self.margin is None else ours(self.margin)
        return ours(self.mean), None if self.std is None else ours(self.std), margin


@dataclass(frozen=True)
class _AlgorithmLink(Spec):
    """One algorithm of the job."""

    name: Annotated[Name, Field(description="the algorithm's name in the leaderboard")]
    url: Annotated[Name, Field(description="the path of the algorithm's yaml file")]
    published: dict[str, PublishedSpec] = field(default_factory=dict)  # by metric


@dataclass(frozen=True, kw_only=True)
class _TestObject(Spec):
    """The tested algorithms."""

    type: Literal["algorithms"] = "algorithms"
    algorithms: Annotated[Several[_AlgorithmLink], Field(description="a list of algorithms, each with name and url")]


@dataclass(frozen=True)
class _Visualization(Spec):
    """What to display at the end."""

    mode: Literal["selected_only"] = "selected_only"
    method: Literal["print_table", "draw_heatmap_picture"] = "print_table"


_Texts = Annotated[tuple[str, ...], Field(strict=False)]


@dataclass(frozen=True)
class _SelectedDataItem(Spec):
    """The columns of the selected leaderboard."""

    paradigms: _Texts = ("all",)
    modules: _Texts = ("all",)
    hyperparameters: _Texts = ("all",)
    metrics: _Texts = ("all",)


_Column = Annotated[dict[str, Literal["ascend", "descend"]], AfterValidator(_column)]


@dataclass(frozen=True)
class RankSpec(Spec):
    """How the leaderboard is sorted, selected and saved."""

    sort_by: Annotated[
        tuple[tuple[str, bool], ...],  # (column, descending)
        ByYamlType(list=Several[_Column]),
        Field(description="a list such as '- accuracy: descend'"),
    ]
    visualization: InitVar[Annotated[_Visualization | None, ByYamlType(mapping=_Visualization)]] = None
    visualization_mode: Annotated[str, NoKey] = "selected_only"
    visualization_method: Annotated[str, NoKey] = "print_table"
    selected_dataitem: InitVar[Annotated[_SelectedDataItem | None, ByYamlType(mapping=_SelectedDataItem)]] = None
    paradigms: Annotated[tuple[str, ...], NoKey] = ("all",)
    modules: Annotated[tuple[str, ...], NoKey] = ("all",)
    hyperparameters: Annotated[tuple[str, ...], NoKey] = ("all",)
    metrics: Annotated[tuple[str, ...], NoKey] = ("all",)
    # An algorithm of the job that all others are compared with, seed by seed.
    baseline: Name | None = None
    select: SelectSpec | None = None  # None: every configuration is a row, ranked on all results
    # ianvs: Ianvs's own tables, too, in rank/ianvs/; proposal: the report of the MDIL-SS proposal, in rank/proposal/
    style: Literal["native", "ianvs", "proposal"] = "native"
    selected_output_columns: _Texts = ()  # columns of selected_rank.csv, by title; (): all
    # One column for hyperparameters that classes name differently: {lr: learning_rate}.
    columns: Annotated[
        Mapping[str, Name], Field(description="a mapping of hyperparameters to the columns that show them")
    ] = field(default_factory=dict)
    save_mode: Literal["selected_only", "selected_and_all", "selected_and_all_and_picture"] = "selected_and_all"
    # By column.
    places: Annotated[Mapping[str, Location], NoKey] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self, visualization: _Visualization | None, selected: _SelectedDataItem | None) -> None:
        shown = {f"visualization_{name}": value for name, value in vars(visualization).items()} if visualization else {}
        for name, value in {**shown, **(vars(selected) if selected else {})}.items():
            object.__setattr__(self, name, value)

    def placed(self, document: Document, path: Steps) -> Self:
        """Return a copy with the locations in its file."""
        columns = ((*where, name) for where, entry in entries(document.data, *path, "sort_by") for name in entry)
        places = {str(where[-1]): document.key_place(where) for where in columns}
        places |= {name: document.key_place((*path, "columns", name)) for name in self.columns if name not in places}
        return replace(super().placed(document, path), places=places)


@dataclass(frozen=True)
class EngineSpec(NamedSpec):
    """Where cases run; further keys are the engine's options."""

    name: Annotated[Name, Field(description="the engine: local, inline, ray or one of the author's own")]
    url: FilePath = None  # the author's file that defines it; None for an installed engine
    # Where exams are built before a run: on this machine, or by the engine, if only it has the data.
    build_exams: Literal["here", "there"] = "here"
    options: Options = field(default_factory=dict)
    checks: InitVar[Literal["here", "there"] | None] = None  # the former name of build_exams (`MOVED_KEYS`)


@dataclass(frozen=True, kw_only=True)
class GenerationSpec(PlacedSpec):
    """The source of replies of language models: the learner with transformers, or a server with its base model."""

    engine: Literal["transformers", "server"] = "transformers"
    url: Name | None = None  # address of the server
    version: Annotated[str, NoKey] = ""  # version of the server's program, determined during planning


def _reachable(given: GenerationSpec) -> GenerationSpec:
    if (given.engine == "server") is (given.url is None):
        raise InvalidValue("a url belongs to `engine: server`. Write both, or neither.", "conflicting-keys")
    if given.url is not None and not given.url.startswith(("http://", "https://")):
        raise InvalidValue(f"the url '{given.url}' is no web address. Write it as http://127.0.0.1:8000.")
    return given


@dataclass(frozen=True)
class LimitsSpec(Spec):
    """Limits of a case; None: no limit. The clock starts when the case is ready to begin."""

    case_seconds: Annotated[float, Field(gt=0)] | None = None
    round_seconds: Annotated[float, Field(gt=0)] | None = None
    # As Peak_memory_mb: without what the process used before the plugin was created.
    memory_mb: Annotated[float, Field(gt=0)] | None = None
    # Size of the files that a plugin's save() writes; larger ones are not read.
    saved_mb: Annotated[float, Field(gt=0)] = 20_000.0
    # Size of all models that sandboxed cases keep until their evaluation; None: the free space.
    models_mb: Annotated[float, Field(gt=0)] | None = None
    grace_seconds: Annotated[float, Field(ge=0)] = 10.0  # from the request to stop (SIGTERM) to SIGKILL
    # Time limit for importing an author's file, or building a plugin, before a run.
    check_seconds: Annotated[float, Field(gt=0)] = 120.0


@dataclass(frozen=True)
class References(PlacedSpec):
    """Algorithms of the job that serve as reference runs, in place of planned ones."""

    joint: Name | None = None
    single_task: Name | None = None


@dataclass(frozen=True)
class _Simulation(Spec):
    """Ianvs's simulated cluster."""

    cloud_number: int | None = None
    edge_number: int | None = None
    cluster_name: str | None = None
    kubeedge_version: str | None = None
    sedna_version: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Links(PlacedSpec):
    """The name of the job, and its linked files."""

    name: Annotated[Name, AfterValidator(folder_name), Field(description="the name of the job's folder of results")]
    testenv: Annotated[
        str | list[str],
        ByYamlType(text=Name, list=Annotated[list[Name], NotEmpty]),
        Field(description="the path of the testenv file, or a list of such paths"),
    ]
    test_object: Annotated[_TestObject, Field(description="what is examined: a list of algorithms")]


@dataclass(frozen=True, kw_only=True)
class JobSettings(PlacedSpec):
    """Settings of a job that need no other file."""

    rank: Annotated[RankSpec, Field(description="how the leaderboard is sorted")]
    # How hyperparameters with a range are searched; None: there are none.
    search: SearchSpec | None = None
    workspace: Annotated[Path, BeforeValidator(_workspace)] = Path("./workspace")
    seeds: Several[Annotated[int, Field(ge=0, lt=2**32)]] = (0,)
    # Number of runs of the first seed of each row, whose differences are noise of the machine.
    repeat: Annotated[int, Field(ge=1)] = 1
    jobs: Annotated[int, Field(ge=1)] | None = None  # concurrent cases; None: as many as the cores allow
    # CPU threads of one case: part of a case's identity, since it changes the last bits.
    threads: Annotated[int, Field(ge=1)] = 1
    engine: EngineSpec = EngineSpec("local")
    device: Device = "auto"
    # Indices of the GPUs to use; None: all visible ones.
    gpus: Several[Annotated[int, Field(ge=0)]] | None = None
    # Number of cases per GPU; auto: determined while they run.
    cases_per_gpu: Annotated[
        int | Literal["auto"], ByYamlType(number=Annotated[int, Field(ge=1)], text=Literal["auto"])
    ] = 1
    # The source of replies of language models; the user starts a server (docs/language.md).
    generation: Annotated[GenerationSpec, AfterValidator(_reachable)] = GenerationSpec()
    limits: LimitsSpec = LimitsSpec()
    retries: Annotated[int, Field(ge=0)] = 1  # retries of a killed or lost case; an exception is not retried
    fail_fast: bool = False
    # Whether learners run in sandboxes without the exam (docs/trust.md).
    sealing: Literal["off", "normal", "audit", "open", "strict"] = "off"
    # For sandboxed cases: "after each case" needs less disk and protects less.
    examine: Literal["after all cases", "after each case"] = "after all cases"

    @property
    def sandboxed(self) -> bool:
        """Whether learners run in sandboxes without the exam."""
        return self.sealing == "strict"


@dataclass(frozen=True, kw_only=True)
class JobFile(JobSettings, _Links):
    """The keys below `benchmarkingjob:`."""

    without_effect: ClassVar = {"simulation": ""}

    references: Annotated[
        Literal["auto", "none"] | References, ByYamlType(text=Literal["auto", "none"], mapping=References)
    ] = "auto"
    simulation: _Simulation | None = None
    # Working directory under `contract: ianvs`; None: determined by the paths in this file.
    working_directory: FolderPath = None

    @staticmethod
    def conflicts(data: object) -> Iterator[ConfigProblem]:
        """Find keys that exclude each other or have no effect."""
        if (sealing := at(data, "sealing")) not in (None, "off", "strict"):
            message = f"`sealing: {sealing}` has no effect any more, and means `off` (docs/trust.md). Take it out."
            yield ConfigProblem(message, ("sealing",), key=False, code="no-effect", warning=True)
        if at(data, "examine") is not None and sealing != "strict":
            message = "'examine' has no effect without `sealing: strict`. Take it out."
            yield ConfigProblem(message, ("examine",), code="no-effect", warning=True)
        algorithms = list(entries(data, "test_object", "algorithms"))
        named = [((*path, "name"), name) for path, link in algorithms if isinstance(name := at(link, "name"), str)]
        yield from repeated(named, "algorithm '{}' is given twice. Give each its own name.")
        seeds = ((path, seed) for path, seed in entries(data, "seeds") if isinstance(seed, int))
        yield from repeated(seeds, "seed {} is given twice, and would repeat the same result. Keep one.", key=True)
        names = [name for _, name in named]
        baseline = at(data, "rank", "baseline")
        if isinstance(baseline, str) and names and baseline not in names:
            hint = f"{closest(baseline, names)} They are: {one_line(names)}."
            yield ConfigProblem(
                f"'{baseline}' is not an algorithm of the job.{hint}", ("rank", "baseline"), code="unknown-reference"
            )
        if (select := at(data, "rank", "select")) is not None:
            yield from select_problems(select, ("rank", "select"))
        if at(data, "search") is not None:
            yield from search_problems(data)
        columns = (where for path, _ in entries(data, "rank", "sort_by") for where, _ in entries(data, *path))
        sorting = ((where, where[-1]) for where in columns if isinstance(where[-1], str))
        yield from repeated(sorting, "metric '{}' is given twice. Sort by it once.", key=True)
