"""Sources by name: entry points of the group `ianvs.datasets`, ianvs's own and those of other packages."""

from __future__ import annotations

from ianvs.base.errors import ConfigError, PluginError, Problem
from ianvs.config.spec import DatasetSpec
from ianvs.exam.data.dataset_source import Source
from ianvs.exam.data.options import check_options
from ianvs.plugins.loader import load

__all__ = ["ENTRY_POINTS", "check_named", "named_source"]

ENTRY_POINTS = "ianvs.datasets"
_OF_FILES = ("train", "test", "image_size", "layout", "classes", "label", "using")


def check_named(spec: DatasetSpec) -> list[Problem]:
    """Every problem of a dataset with a `name`; loads nothing."""
    return _opened(spec)[1]


def named_source(spec: DatasetSpec) -> Source:
    """The source that `spec` names, with its options. Raises ConfigError with every problem."""
    source, problems = _opened(spec)
    if source is None or problems:
        raise ConfigError(problems)
    return source


def _opened(spec: DatasetSpec) -> tuple[Source | None, list[Problem]]:
    name = spec.name or ""
    place = spec.places.get("name", spec.place)
    try:
        kind: object = load(None, name, ENTRY_POINTS).target
    except PluginError as error:
        return None, [Problem(str(error), place)]
    if not (isinstance(kind, type) and issubclass(kind, Source)):
        return None, [
            Problem(f"what is installed as the dataset '{name}' is no subclass of ianvs.exam.data.Source.", place)
        ]
    source, problems = check_options(kind, spec.options, f"the dataset {name}", place, spec.places)
    for key in _OF_FILES:
        if key not in kind.takes and getattr(spec, key):
            message = f"`{key}` is for data in files; {name} brings its own. Take out `{key}` or `name`."
            problems.append(Problem(message, spec.places.get(key, place)))
    return source, problems + (source.check(spec) if source is not None else [])
