"""JSON Schemas (draft 2020-12) of the three files, from their models and the names of installed plugins.

A schema checks less than ianvs: nothing that depends on several keys or files together.
"""

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from pydantic import BaseModel, TypeAdapter

from ianvs.base.entry_points import installed
from ianvs.config.models import FILE_KINDS
from ianvs.config.models.samples import DatasetSpec
from ianvs.config.models.section import NamedSpec, Spec
from ianvs.exam.data.named_sources import Source
from ianvs.exam.paradigms import GROUP, PARADIGMS
from ianvs.exam.scenarios.per_seed_exam import SEEDS
from ianvs.exam.scenarios.request import Scenario

Schema = dict[str, Any]


def scenario_options() -> Iterator[Schema]:
    """Yield a condition with the options of each installed scenario."""
    names: list[str] = []
    for name, point in installed("ianvs.scenarios").items():
        kind = _loaded(point)
        if isinstance(kind, type) and issubclass(kind, Scenario):
            called = list(dict.fromkeys((*kind.names, name)))
            names += called
            yield _if_named(called, _options(kind), ("name", "url", "file"))
    yield {"anyOf": [_offered(names), {"type": "object", "properties": {"name": _offered(names)}}]}


def dataset_options() -> Iterator[Schema]:
    """Yield a condition with the options of each installed dataset, in addition to the common keys."""
    names = []
    for name, point in installed("ianvs.datasets").items():
        kind = _loaded(point)
        if isinstance(kind, type) and issubclass(kind, Source):
            names.append(name)
            yield _if_named([name], _options(kind), tuple(DatasetSpec.known_keys()))
    yield {"properties": {"name": _offered(names)}}
    yield {"if": {"not": {"required": ["name"]}}, "then": {"propertyNames": {"enum": [*DatasetSpec.known_keys()]}}}


def paradigm_options(keys: set[str]) -> Iterator[Schema]:
    """Yield a condition with the options of each paradigm, besides `paradigm_type`. keys: the common keys."""
    kinds: dict[str, object] = {**PARADIGMS, **{name: _loaded(point) for name, point in installed(GROUP).items()}}
    for name, kind in kinds.items():
        model = getattr(kind, "options", None)
        options = _options(model) if model is not None else {}
        allowed = [*sorted(keys), *options]
        condition = {"paradigm_type": {"anyOf": [{"const": name}, _by_name([name])]}, "contract": {"const": "native"}}
        if_named = {"properties": condition, "required": ["paradigm_type"]}
        yield {"if": if_named, "then": {"properties": options, "propertyNames": {"enum": allowed}}}


def named(group: str) -> Schema:
    """Return a schema of the names in a group of entry points that also accepts an author's own name."""
    if group == "metrics":
        from ianvs.exam.metrics.metric_names import ALIASES
        from ianvs.exam.metrics.registry import metrics

        return _offered([*(name for metric in metrics() for name in (metric.name, *metric.aliases)), *ALIASES])
    return _offered([*installed(f"ianvs.{group}")])


def _offered(names: list[str]) -> Schema:
    """Return a schema with which editors suggest these names and accept others."""
    return {"anyOf": [{"enum": names}, {"type": "string"}]}


def _loaded(point: EntryPoint) -> object:
    try:
        return point.load()
    except Exception:  # `ianvs validate` reports the error where the name is used
        return None


def _options(model: type[BaseModel]) -> Mapping[str, Schema]:
    made = model.model_json_schema()
    inner = made.pop("$defs", {})
    fields = {name: plain(schema, inner) for name, schema in made.get("properties", {}).items()}
    return {
        name: {"anyOf": [schema, {"const": "case"}]} if name in SEEDS else schema for name, schema in fields.items()
    }


def plain(schema: Any, definitions: Mapping[str, object] | None = None) -> Any:
    """Return the schema without keys that no file has, and without titles that only repeat a key.

    definitions: the targets of "$ref", which replace the references; None: references are kept.
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


def _by_name(names: list[str]) -> Schema:
    """Return a condition: a mapping with one of these names, and without an author's `url`."""
    named = {"type": "object", "properties": {"name": {"enum": names}}, "required": ["name"]}
    return {**named, "not": {"required": ["url"]}}


def _if_named(names: list[str], options: Mapping[str, Schema], shared: tuple[str, ...]) -> Schema:
    """Return a condition that allows exactly these options under one of these names."""
    return {
        "if": _by_name(names),
        "then": {"properties": dict(options), "propertyNames": {"enum": [*shared, *options]}},
    }


KINDS = {"job": "benchmarkingjob", "testenv": "testenv", "algorithm": "algorithm"}
"""Name of a schema, and the top-level key of its files."""

_ALSO: Mapping[str, tuple[Schema, ...]] = {  # forms that our validators convert into the form in the model
    "using": ({"type": "string"},),
    "image_size": ({"type": "integer", "minimum": 1},),
    "initial_model_url": ({"type": "string"},),
}


def file_schema(kind: str) -> Schema:
    """Return the schema of a type of file, such as "testenv"."""
    key = KINDS[kind]
    made = TypeAdapter(FILE_KINDS[key]).json_schema()
    sections: Schema = made.pop("$defs", {})
    models = {model.__name__: model for model in _specs(Spec)}
    used = {name: _section(section, models.get(name)) for name, section in sections.items() if name != "Location"}
    for name, bring in (("ScenarioSpec", scenario_options), ("DatasetSpec", dataset_options)):
        if name in used:
            used[name] = {"allOf": [used[name], *bring()]}
    for name, group in (("MetricSpec", "metrics"), ("EngineSpec", "engines"), ("ModuleSpec", "algorithms")):
        if name in used:
            used[name] = {"allOf": [used[name], {"properties": {"name": named(group)}}]}
    top = _section(made, FILE_KINDS[key])
    if kind == "algorithm":
        top = {"allOf": [top, *paradigm_options(set(FILE_KINDS[key].known_keys()))]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ianvs: {key}.yaml",
        "type": "object",
        "properties": {key: top},
        "required": [key],
        "$defs": used,
    }


def _specs(model: type[Spec]) -> Iterator[type[Spec]]:
    for inner in model.__subclasses__():
        yield inner
        yield from _specs(inner)


def _section(schema: Schema, model: type[Spec] | None) -> Schema:
    """Return the schema of one section with the keys that a file may have."""
    section: Schema = plain(schema)
    if model is None or "properties" not in section:
        return section
    properties = section["properties"]
    for key in _ALSO.keys() & properties.keys():
        properties[key] = {"anyOf": [*_ALSO[key], properties[key]]}
    for key, remark in model.without_effect.items():
        properties.setdefault(key, {"description": f"without effect{f': {remark}' if remark else ''}"})
    # Options of a dataset depend on its name, so they are listed among the conditions.
    section["additionalProperties"] = model.has_options or model is DatasetSpec
    if issubclass(model, NamedSpec):
        return {"anyOf": [{"type": "string", "minLength": 1}, section]}
    return section
