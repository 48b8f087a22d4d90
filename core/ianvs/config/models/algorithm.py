"""algorithm.yaml: the paradigm, its modules, and the grid of hyperparameters."""

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from ianvs.base.errors import InvalidValue, Location, closest
from ianvs.base.method_names import built_in
from ianvs.config.models.base import ConfigProblem, Name, at, entries, path_text, repeated
from ianvs.config.models.contract_name import NATIVE, ContractName
from ianvs.config.models.interpreter import EnvironmentSpec, Interpreter
from ianvs.config.models.samples import Collections
from ianvs.config.models.search import ValuesOrRange
from ianvs.config.models.section import (
    NULL_IS_ABSENT,
    ByYamlType,
    NamedSpec,
    NoKey,
    OfOptions,
    Options,
    PlacedSpec,
    Several,
    Spec,
)
from ianvs.config.paths import Lookup
from ianvs.config.strict_yaml import Document, Steps

MODULE_TYPES = (
    "basemodel",
    "edgemodel",
    "cloudmodel",
    "drafter",
    "verifier",
    "dataset_processor",
    "hard_example_mining",
    "task_definition",
    "task_relationship_discovery",
    "task_allocation",
    "task_remodeling",
    "inference_integrate",
    "task_update_decision",
    "unseen_task_allocation",
    "unseen_sample_recognition",
    "unseen_sample_re_recognition",
    "aggregation",
    "inference_scheme",
    "memory",
)
"""Module types of KubeEdge Ianvs; the last two are new. A paradigm warns of types that it does not use."""

SPLITTING_METHODS = ("default", "shuffled")
IANVS_SPLITTING_METHODS = ("fwt_splitting", "hard-example_splitting", "city_splitting")
OTHER_HYPERPARAMETERS = "other_hyperparameters"
"""The hyperparameter whose values are files of constants."""

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*)?")


def _splitting_method(name: str) -> str:
    if name in SPLITTING_METHODS:
        return name
    choices_hint = f" There are: {', '.join(SPLITTING_METHODS)}."
    if name in IANVS_SPLITTING_METHODS:
        raise InvalidValue(
            f"splitting method '{name}' is only for plugins with `contract: ianvs`.{choices_hint}",
            "unsupported-by-contract",
        )
    methods = SPLITTING_METHODS + IANVS_SPLITTING_METHODS
    raise InvalidValue(f"unknown splitting method '{name}'.{closest(name, methods) or choices_hint}", "invalid-choice")


def _authors_url(value: object, info: "ValidationInfo[Lookup]") -> str | None:
    if value in (None, ""):
        return None
    if isinstance(value, str) and not (value.endswith(".py") or "/" in value or "${" in value):
        if not _DOTTED.fullmatch(value):
            raise InvalidValue(
                f"'{value}' is neither the path of a .py file nor 'package.module' nor 'package.module:Class'.",
                "invalid-path",
            )
        return value
    path = info.context.find(value)
    if path.suffix != ".py":
        raise InvalidValue(
            f"'{value}' is not a python file. Write the path of a .py file, or 'package.module'.", "wrong-path-type"
        )
    return str(path)


AuthorsUrl = Annotated[str | None, BeforeValidator(_authors_url)]
"""The absolute path of a Python file, "package.module", or None for a built-in class."""


def _initial_model(value: object, info: "ValidationInfo[Lookup]") -> Path | str | None:
    """Return the path of an existing file or folder, else the string: a model's name in a hub."""
    if value in (None, ""):
        return None
    text = path_text(value)
    try:
        return info.context.find(text, "any")
    except ValueError:
        if text.startswith(("./", "../", "/", "~/")) or "${" in text:
            raise
        return text


def _grid_items(
    given: list[dict[str, ValuesOrRange]] | dict[str, ValuesOrRange],
) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    pairs = (pair for entry in (given if isinstance(given, list) else [given]) for pair in entry.items())
    return tuple((name, grid.candidates) for name, grid in pairs if name != OTHER_HYPERPARAMETERS)


def _one_name(entry: dict[str, ValuesOrRange]) -> dict[str, ValuesOrRange]:
    if len(entry) != 1:
        raise InvalidValue(
            "each entry of `hyperparameters` has exactly one name. Begin a new line with '- ' for each.", "wrong-length"
        )
    return entry


_OneGrid = Annotated[dict[str, ValuesOrRange], AfterValidator(_one_name)]
Hyperparameters = Annotated[
    tuple[tuple[str, tuple[Any, ...]], ...],  # in file order: (hyperparameter, values)
    ByYamlType(list=list[_OneGrid], mapping=dict[str, ValuesOrRange]),
    AfterValidator(_grid_items),
    NULL_IS_ABSENT,
    Field(validation_alias="hyperparameters"),
]
"""A list of one-key mappings from a hyperparameter to the values to try, or one mapping of all."""


@dataclass(frozen=True)
class ModuleSpec(PlacedSpec):
    """One module of an algorithm: a class, and values for the arguments of its constructor.

    `places` are by hyperparameter, too, and `value_places` by hyperparameter and position of the value.
    """

    type: Annotated[Name, Field(description="what the module does, such as basemodel")]
    name: Annotated[Name, Field(description="the name of the class")]  # or a registered alias
    url: AuthorsUrl = None
    grid: Hyperparameters = ()
    constants: Annotated[Mapping[str, Any], NoKey] = field(default_factory=dict)  # values from other files
    value_places: Annotated[Mapping[str, tuple[Location, ...]], NoKey] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.url is None and (method := built_in(self.name)) is not None:
            for key, value in zip(("name", "url"), method, strict=True):
                object.__setattr__(self, key, value)

    def placed(self, document: Document, path: Steps) -> Self:
        """Return a copy with the locations in its file."""
        made = super().placed(document, path)
        named = {key: document.value_place((*path, key)) for key in ("name", "url", "type")}
        where = {name: path for path, name, _ in grids(document.data, path)} if self.grid else {}
        places = {name: document.key_place(where[name]) for name, _ in self.grid} | named
        value_places = {
            name: tuple(document.value_place(place) for place in _value_paths(document.data, where[name], values))
            for name, values in self.grid
        }
        return replace(made, places=places, value_places=value_places)

    def with_constants(self, files: Sequence[Document]) -> Self:
        """Return a copy with the constants in `files`: later files override earlier ones, and the grid all of them."""
        last = {str(path[-1]): (file, value) for file in files for path, value in entries(file.data)}
        places = {name: file.key_place((name,)) for name, (file, _) in last.items()}
        value_places = {name: (file.value_place((name,)),) for name, (file, _) in last.items()}
        return replace(
            self,
            constants={name: value for name, (_, value) in last.items()},
            places={**places, **self.places},
            value_places={**value_places, **self.value_places},
        )


@dataclass(frozen=True)
class SplitSpec(Spec):
    """KubeEdge Ianvs's `*_learning_data_setting`: how samples are split into rounds, and rounds into two parts."""

    train_ratio: Annotated[float, Field(gt=0, le=1)] = 0.8
    splitting_method: Annotated[str, AfterValidator(_splitting_method)] = "default"


@dataclass(frozen=True)
class ParadigmSpec(NamedSpec):
    """A paradigm by name; `url` is the file or module that defines it. The paradigm itself checks `options`."""

    has_options: ClassVar = False  # keys beside `paradigm_type`

    name: Annotated[Name, Field(description="the name of the paradigm")]
    url: AuthorsUrl = None
    options: Options = field(default_factory=dict)


_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "s": 1, "min": 60, "h": 3600, "d": 86400}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


def _quantity(value: str, units: Sequence[str]) -> int:
    """Convert "16GB" to bytes, or "2h" to seconds."""
    match = _QUANTITY.fullmatch(value.strip())
    if match is None or match[2] not in units:
        raise InvalidValue(f"'{value}' is not a number with one of the units {', '.join(units)}.")
    return math.ceil(float(match[1]) * _UNITS[match[2]])


_Bytes = Annotated[int, ByYamlType(text=str), AfterValidator(partial(_quantity, units=("MB", "GB", "TB")))]
_Seconds = Annotated[int, ByYamlType(text=str), AfterValidator(partial(_quantity, units=("s", "min", "h", "d")))]


@dataclass(frozen=True)
class ResourcesSpec(Spec):
    """Resources of each case of an algorithm. They affect no result and are not part of a case's identity."""

    gpus: Annotated[int, Field(ge=0)] = 0  # GPUs reserved for each case; 0: no GPU is visible
    cpus: Annotated[int, Field(ge=1)] | None = None  # cores; None: as many as the job's `threads`
    memory: _Bytes | None = None  # read from 16GB
    time: _Seconds | None = None  # read from 2h

    def __str__(self) -> str:
        amounts = [f"{self.cpus} cpus" if self.cpus else "", f"{self.gpus} gpus" if self.gpus else "no gpu"]
        amounts += [f"{self.memory / 1e9:g} GB" if self.memory else "", f"{self.time / 3600:g} h" if self.time else ""]
        return ", ".join(filter(None, amounts))


@dataclass(frozen=True, kw_only=True)
class AlgorithmSpec(PlacedSpec):
    """algorithm.yaml: one algorithm; further keys are its paradigm's options. `place` is where the job names it."""

    has_options: ClassVar = True
    places_of_keys: ClassVar = True
    without_effect: ClassVar = {
        "lifelong_learning_data_setting": "",
        "fl_learning_data_setting": "",
        "fl_data_setting": "",
        "third_party_packages": "",
        "mode": "",
        "quantization_type": "",
        "llama_quantize_path": "",
    }

    paradigm: Annotated[
        ParadigmSpec,
        Field(
            validation_alias="paradigm_type",
            description="the paradigm, such as incrementallearning",
        ),
    ]
    # In the order of the file, but the base model first.
    modules: Annotated[Several[ModuleSpec], Field(description="a list of modules, each with type, name and url")]
    split: Annotated[SplitSpec | None, Field(validation_alias="incremental_learning_data_setting")] = None
    initial_model: Annotated[
        Path | str | None, BeforeValidator(_initial_model), Field(validation_alias="initial_model_url")
    ] = None
    contract: ContractName = NATIVE
    python: Interpreter = None  # interpreter of its plugins; None: that of ianvs
    environment: EnvironmentSpec | None = None  # the environment to create for `python`
    resources: ResourcesSpec | None = None  # resources of each case; None: the engine's default
    pretrained_on: Collections = ()  # training data of its weights, if their name does not imply it
    stream_cost: Annotated[int, Field(ge=1)] = 1  # chunks of a prequential stream that pass while it learns from one
    options: InitVar[Annotated[Mapping[str, object] | None, OfOptions]] = None
    contract_settings: Annotated[Any, NoKey] = None  # extra settings of a non-native contract
    name: Annotated[str, NoKey] = ""
    file: Annotated[Path, NoKey] = Path()

    def __post_init__(self, options: Mapping[str, object] | None) -> None:
        if options:
            object.__setattr__(self, "paradigm", replace(self.paradigm, options=options))

    @staticmethod
    def conflicts(data: object) -> Iterator[ConfigProblem]:
        """Find keys that exclude each other."""
        if at(data, "python") and at(data, "environment"):
            yield ConfigProblem(
                "'python' and 'environment' both name an interpreter. Leave one out.",
                ("python",),
                code="conflicting-keys",
            )
        modules = [((*path, "type"), at(module, "type")) for path, module in entries(data, "modules")]
        types = [(path, name) for path, name in modules if isinstance(name, str)]
        yield from repeated(types, "module type '{}' is given twice. An algorithm has one of each.")
        for path, module in entries(data, "modules"):
            if not at(module, "hyperparameters"):
                continue
            named = [(where, name) for where, name, _ in grids(data, path)]
            message = "hyperparameter '{}' is given twice. Put all its values in one list."
            yield from repeated(named, message, key=True)
            for where, _, grid in grids(data, path):
                yield from equal_values(data, where, grid)


def grids(data: object, module: Steps) -> Iterator[tuple[Steps, str, Any]]:
    """Yield (path, name, grid) of each hyperparameter of the module at `module`, whatever the shape of the entries."""
    for path, entry in entries(data, *module, "hyperparameters"):
        if isinstance(path[-1], str):
            yield path, path[-1], entry
        elif isinstance(entry, dict):
            yield from (((*path, name), name, grid) for name, grid in entry.items())


def _value_paths(data: object, path: Steps, values: Sequence[object]) -> Iterator[Steps]:
    """Yield the path of each value of the hyperparameter at `path`, or of its range."""
    kind = next((name for name in at(data, *path) or () if name != "values"), "values")
    for index in range(len(values)):
        yield (*path, "values", index) if kind == "values" else (*path, kind)


def equal_values(data: object, path: Steps, grid: object) -> Iterator[ConfigProblem]:
    """Find values that the grid at `path` lists twice: they would be the same case."""
    list_keys = [key for key in ("values", "choice") if isinstance(at(grid, key), list)]
    values = (entry for key in list_keys[:1] for entry in entries(data, *path, key))
    message = "this value is in the list already (1e-3 and 0.001 are the same number). Remove one."
    yield from repeated(((where, _comparable(value)) for where, value in values), message, key=True)


def _comparable(value: object) -> Hashable:
    """Return a key that is equal for equivalent values: `1` and `1.0`, but not `1` and `true` or `"1"`."""
    if isinstance(value, dict):
        return frozenset((key, _comparable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    if isinstance(value, float) and math.isnan(value):
        return "number", "nan"
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    return kind, value
