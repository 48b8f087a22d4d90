"""Corrects misspelt keys of a file, so that its other errors can be reported at once."""

from collections.abc import Mapping
from dataclasses import replace

import pydantic

from ianvs.base.errors import Location
from ianvs.base.near_names import nearest
from ianvs.config.messages import existing_steps, sections_at
from ianvs.config.models.base import at
from ianvs.config.models.section import Spec
from ianvs.config.strict_yaml import Document, Steps


def with_known_keys(
    error: pydantic.ValidationError, model: type[Spec], document: Document, kind: str
) -> Document | None:
    """Rename unknown keys to the known ones that they are near to, and leave out the others.

    Args:
        error: What is wrong with the section.
        model: The form of the section.
        document: The file.
        kind: The key of the section at the top of the file.

    Returns:
        The document, or None if something else than keys is wrong.
    """
    section = at(document.data, kind)
    names: dict[Steps, str | None] = {}
    for details in error.errors(include_url=False):
        if details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]:
            continue  # pydantic counts the entries that are right
        if details["type"] == "missing":  # it may be a misspelt key, also in sections whose unknown keys are options
            key, path = str(details["loc"][-1]), existing_steps(details["loc"], section)
            given = at(section, *path)
            misspelt = [name for name in given if nearest(str(name), [key])] if isinstance(given, dict) else []
            names |= {(*path, name): key for name in misspelt[:1]}
            continue
        if details["type"] != "unexpected_keyword_argument":
            return None
        path = existing_steps(details["loc"], section)
        known_keys = [name for each in sections_at(model, path[:-1]) for name in each.known_keys()]
        near = nearest(str(path[-1]), known_keys)
        beside = at(section, *path[:-1])
        names[path] = None if not isinstance(beside, dict) or near in beside else near
    for path, name in sorted(names.items(), key=lambda item: -len(item[0])):
        document = _renamed(document, (kind, *path), name)
    return document


def _renamed(document: Document, path: Steps, name: str | None) -> Document:
    """Return the document with another name for the key at `path`; None: without the key."""
    depth = len(path)

    def moved(places: Mapping[Steps, Location]) -> dict[Steps, Location]:
        renamed = {}
        for steps, place in places.items():
            if steps[:depth] != path:
                renamed[steps] = place
            elif name is not None:
                renamed[(*path[:-1], name, *steps[depth:])] = place
        return renamed

    data = _with_key(document.data, path, name)
    return replace(document, data=data, keys=moved(document.keys), values=moved(document.values))


def _with_key(data: object, path: Steps, name: str | None) -> object:
    first, *rest = path
    if isinstance(data, list):
        return [_with_key(item, tuple(rest), name) if n == first else item for n, item in enumerate(data)]
    assert isinstance(data, dict)
    if rest:
        return {key: _with_key(value, tuple(rest), name) if key == first else value for key, value in data.items()}
    return {(name if key == first else key): value for key, value in data.items() if key != first or name is not None}
