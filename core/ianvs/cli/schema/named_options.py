"""What a name in a file brings: the options of scenarios, datasets and paradigms, and the names that there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from pydantic import BaseModel

from ianvs.base.entry_points import installed
from ianvs.config.models.samples import DatasetSpec
from ianvs.exam.data.named import Source
from ianvs.exam.paradigms import GROUP, PARADIGMS
from ianvs.exam.scenarios.request import Scenario

Schema = dict[str, Any]
_DRAWN = ("seed", "order_seed")  # may be `case`: the number of the case's seed


def scenario_options() -> Iterator[Schema]:
    """For each installed scenario: its options, if it is named."""
    names: list[str] = []
    for name, point in installed("ianvs.scenarios").items():
        kind = _loaded(point)
        if isinstance(kind, type) and issubclass(kind, Scenario):
            called = list(dict.fromkeys((*kind.names, name)))
            names += called
            yield _if_named("name", called, _options(kind), ("name", "url", "file"))
    yield {"anyOf": [_known(names), {"type": "object", "properties": {"name": _known(names)}}]}


def dataset_options() -> Iterator[Schema]:
    """For each installed dataset the same; they share the keys of all datasets."""
    names = []
    for name, point in installed("ianvs.datasets").items():
        kind = _loaded(point)
        if isinstance(kind, type) and issubclass(kind, Source):
            names.append(name)
            yield _if_named("name", [name], _options(kind), tuple(DatasetSpec.known_keys()))
    yield {"properties": {"name": _known(names)}}
    yield {"if": {"not": {"required": ["name"]}}, "then": {"propertyNames": {"enum": [*DatasetSpec.known_keys()]}}}


def paradigm_options(keys: set[str]) -> Iterator[Schema]:
    """For each paradigm: its options, which stand beside `paradigm_type`. keys: what every algorithm may have."""
    kinds: dict[str, object] = {**PARADIGMS, **{name: _loaded(point) for name, point in installed(GROUP).items()}}
    for name, kind in kinds.items():
        model = getattr(kind, "options", None)
        own = _options(model) if model is not None else {}
        known = [*sorted(keys), *own]
        asked = {"anyOf": [{"const": name}, {**_mapping_named("name", [name]), "not": {"required": ["url"]}}]}
        if_named = {
            "properties": {"paradigm_type": asked, "contract": {"const": "native"}},
            "required": ["paradigm_type"],
        }
        yield {"if": if_named, "then": {"properties": own, "propertyNames": {"enum": known}}}


def named(group: str) -> Schema:
    """A name of a group of entry points, or any other: an author's own."""
    if group == "metrics":
        from ianvs.exam.metrics.registry import metrics

        return _known([name for metric in metrics() for name in (metric.name, *metric.aliases)])
    return _known([*installed(f"ianvs.{group}")])


def _known(names: list[str]) -> Schema:
    """Editors offer these names, and take others."""
    return {"anyOf": [{"enum": names}, {"type": "string"}]}


def _loaded(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception:  # `ianvs validate` says what is wrong with it, where it is named
        return None


def _options(model: type[BaseModel]) -> Mapping[str, Schema]:
    made = model.model_json_schema()
    inner = made.pop("$defs", {})
    found = {name: plain(schema, inner) for name, schema in made.get("properties", {}).items()}
    return {
        name: {"anyOf": [schema, {"const": "case"}]} if name in _DRAWN else schema for name, schema in found.items()
    }


def plain(schema: Any, definitions: Mapping[str, object] | None = None) -> Any:
    """Without keys that no file has, and without titles that only repeat a key.

    definitions: what "$ref" points to, and what takes its place; None: references stay.
    """
    if isinstance(schema, list):
        return [plain(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if definitions is not None and isinstance(ref := schema.get("$ref"), str):
        return plain(definitions[ref.rpartition("/")[2]], definitions)
    return {
        name: plain(value, definitions)
        for name, value in schema.items()
        if not name.startswith("<") and not (name == "title" and isinstance(value, str))
    }


def _mapping_named(key: str, names: list[str]) -> Schema:
    return {"type": "object", "properties": {key: {"enum": names}}, "required": [key]}


def _if_named(key: str, names: list[str], own: Mapping[str, Schema], shared: tuple[str, ...]) -> Schema:
    """Under one of these names, and without an author's `url`, there are these options and no others."""
    asked = {**_mapping_named(key, names), "not": {"required": ["url"]}}
    return {"if": asked, "then": {"properties": dict(own), "propertyNames": {"enum": [*shared, *own]}}}
