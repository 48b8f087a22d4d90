"""The models of the three files -> JSON Schema (draft 2020-12), with what the names of installed things bring.

A schema says less than ianvs checks: nothing of what several keys or files say together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import TypeAdapter

from ianvs.cli.schema.named_options import Schema, dataset_options, named, paradigm_options, plain, scenario_options
from ianvs.config.models import FILE_KINDS
from ianvs.config.models.form import NamedSpec, Spec
from ianvs.config.models.samples import DatasetSpec

KINDS = {"job": "benchmarkingjob", "testenv": "testenv", "algorithm": "algorithm"}
"""What a schema is called, and the key at the top of the files that it is for."""

_ALSO: Mapping[str, tuple[Schema, ...]] = {  # forms that a validator of ours turns into the one that the model has
    "using": ({"type": "string"},),
    "image_size": ({"type": "integer", "minimum": 1},),
    "initial_model_url": ({"type": "string"},),
}


def file_schema(kind: str) -> Schema:
    """Of the files of a kind, such as "testenv"."""
    key = KINDS[kind]
    made = TypeAdapter(FILE_KINDS[key]).json_schema()
    sections: Schema = made.pop("$defs", {})
    models = {model.__name__: model for model in _specs(Spec)}
    used = {name: _section(section, models.get(name)) for name, section in sections.items() if name != "Place"}
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
    """The schema of one section with the keys that a file may have."""
    section: Schema = plain(schema)
    if model is None or "properties" not in section:
        return section
    properties = section["properties"]
    for key in _ALSO.keys() & properties.keys():
        properties[key] = {"anyOf": [*_ALSO[key], properties[key]]}
    for key, remark in model.without_effect.items():
        properties.setdefault(key, {"description": f"without effect{f': {remark}' if remark else ''}"})
    # A dataset has options where it has a name, which is said among its conditions.
    section["additionalProperties"] = model.has_options or model is DatasetSpec
    if issubclass(model, NamedSpec):
        return {"anyOf": [{"type": "string", "minLength": 1}, section]}
    return section
