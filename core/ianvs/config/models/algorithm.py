"""algorithm.yaml: the paradigm, its modules, and the grid of hyperparameters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from ianvs.config.models.base import (
    ByForm,
    ListForm,
    MappingForm,
    Name,
    NoEffect,
    OpenSection,
    Section,
    Slip,
    TextForm,
    at,
    entries,
    path_text,
    repeated,
)
from ianvs.config.paths import Lookup
from ianvs.config.strict_yaml import Steps
from ianvs.errors import closest

__all__ = ["OTHER_HYPERPARAMETERS", "AlgorithmFile", "Grid", "LearningData", "Module", "grids"]

SPLITTING_METHODS = ("default", "shuffled")
FUTURE_SPLITTING_METHODS = ("fwt_splitting", "hard-example_splitting", "city_splitting")
OTHER_HYPERPARAMETERS = "other_hyperparameters"
"""The name in a list of hyperparameters whose values are files of constants."""

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*)?")


def _splitting_method(name: str) -> str:
    if name in SPLITTING_METHODS:
        return name
    there_are = f" There are: {', '.join(SPLITTING_METHODS)}."
    if name in FUTURE_SPLITTING_METHODS:
        raise ValueError(f"splitting method '{name}' of Ianvs is not supported yet.{there_are}")
    known = SPLITTING_METHODS + FUTURE_SPLITTING_METHODS
    raise ValueError(f"splitting method '{name}' is not known.{closest(name, known) or there_are}")


def _module_url(value: Any, info: ValidationInfo) -> str | None:
    if value in (None, ""):
        return None
    text, lookup = path_text(value), info.context
    if not (text.endswith(".py") or "/" in text or "${" in text):
        if not _DOTTED.fullmatch(text):
            raise ValueError(f"'{text}' is no path of a .py file, no 'package.module' and no 'package.module:Class'.")
        return text
    path = lookup.find(text) if isinstance(lookup, Lookup) else Path(text)
    if path.suffix != ".py":
        raise ValueError(f"'{text}' is not a python file. Write the path of a .py file, or 'package.module'.")
    return str(path)


def _initial_model(value: Any, info: ValidationInfo) -> Path | str | None:
    """The path of a file or folder that is there, else the text: a model's name in some hub."""
    if value in (None, ""):
        return None
    text, lookup = path_text(value), info.context
    if not isinstance(lookup, Lookup):
        return text
    try:
        return lookup.find(text, "any")
    except ValueError:
        if text.startswith(("./", "../", "/", "~/")) or "${" in text:
            raise
        return text


def _one_key(entry: dict[str, Any]) -> dict[str, Any]:
    if len(entry) != 1:
        raise ValueError("an entry of hyperparameters names one. Begin each on a line of its own with '- '.")
    return entry


class Grid(Section):
    """The values of one hyperparameter to try."""

    values: list[Any] = Field(min_length=1, description="the list of values to try")


class Module(Section):
    """A class of an algorithm and its hyperparameters."""

    type: Name = Field(description="what the module does, such as basemodel")
    name: Name = Field(description="the name of the class")
    url: Annotated[str | None, BeforeValidator(_module_url)] = None
    hyperparameters: (
        Annotated[
            Annotated[list[Annotated[dict[str, Grid], AfterValidator(_one_key)]], ListForm]
            | Annotated[dict[str, Grid], MappingForm],
            ByForm,
        ]
        | None
    ) = None


class LearningData(Section):
    """How the training data are cut into rounds."""

    train_ratio: float = Field(default=0.8, gt=0, le=1)
    splitting_method: Annotated[str, AfterValidator(_splitting_method)] = "default"


class ParadigmLink(Section):
    """A paradigm, and the file that defines it."""

    name: Name = Field(description="the name of the paradigm")
    url: Annotated[str | None, BeforeValidator(_module_url)] = None


class AlgorithmFile(OpenSection):
    """What stands below `algorithm:`; further keys are the paradigm's options."""

    paradigm_type: Annotated[Annotated[Name, TextForm] | Annotated[ParadigmLink, MappingForm], ByForm] = Field(
        description="how the algorithm is examined, such as incrementallearning"
    )
    modules: list[Module] = Field(min_length=1, description="a list of modules, each with type, name and url")
    incremental_learning_data_setting: LearningData | None = None
    initial_model_url: Annotated[Path | str | None, BeforeValidator(_initial_model)] = None
    lifelong_learning_data_setting: Annotated[Any, NoEffect()] = None
    fl_learning_data_setting: Annotated[Any, NoEffect()] = None
    fl_data_setting: Annotated[Any, NoEffect()] = None
    third_party_packages: Annotated[Any, NoEffect()] = None
    mode: Annotated[Any, NoEffect()] = None
    quantization_type: Annotated[Any, NoEffect()] = None
    llama_quantize_path: Annotated[Any, NoEffect()] = None

    @staticmethod
    def conflicts(data: Any) -> Iterator[Slip]:
        """Slips that concern several keys, in `data` of any shape."""
        types = [((*path, "type"), at(module, "type")) for path, module in entries(data, "modules")]
        yield from repeated("module type", types, "An algorithm has one of each.")
        for path, _ in entries(data, "modules"):
            named = [(where, name) for where, name, _ in grids(data, path)]
            yield from repeated("hyperparameter", named, "Put all its values in one list.", key=True)
            for where, _, grid in grids(data, path):
                yield from _equal_values(data, where, grid)


def grids(data: Any, module: Steps) -> Iterator[tuple[Steps, str, Any]]:
    """(path, name, grid) of each hyperparameter of the module at `module`, in a list or a mapping of any shape."""
    for path, entry in entries(data, *module, "hyperparameters"):
        if isinstance(path[-1], str):
            yield path, path[-1], entry
        elif isinstance(entry, dict):
            yield from (((*path, name), name, grid) for name, grid in entry.items())


def _equal_values(data: Any, path: Steps, grid: Any) -> Iterator[Slip]:
    seen: set[Any] = set()
    for where, value in entries(data, *path, "values") if isinstance(at(grid, "values"), list) else ():
        if (same := _comparable(value)) in seen:
            yield Slip("this value is in the list already (1e-3 and 0.001 are one number). Remove one.", where)
        seen.add(same)


def _comparable(value: Any) -> Any:
    """Equal for values that are one choice: `1` and `1.0`, but not `1` and `true` or `"1"`."""
    if isinstance(value, dict):
        return frozenset((key, _comparable(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_comparable, value))
    if isinstance(value, float) and math.isnan(value):
        return "number", "nan"
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    return kind, value
