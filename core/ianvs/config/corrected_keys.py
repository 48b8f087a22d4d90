"""Moves keys of a file: former names to the present ones, and misspelt ones, so that other errors are reported, too."""

import copy
from collections.abc import Mapping
from dataclasses import replace

import pydantic

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import Location, ValidationError
from ianvs.base.near_names import nearest
from ianvs.config.messages import existing_steps, sections_at
from ianvs.config.models.base import at
from ianvs.config.models.section import Spec
from ianvs.config.strict_yaml import Document, Steps

MOVED_KEYS: Mapping[Steps, Steps] = {
    ("benchmarkingjob", "engine", "checks"): ("benchmarkingjob", "engine", "build_exams"),
    ("benchmarkingjob", "engine", "alone"): ("benchmarkingjob", "engine", "without_supervisor"),  # of slurm
    ("testenv", "questions"): ("testenv", "evaluation_tasks"),
    ("testenv", "using"): ("testenv", "dataset", "using"),  # accepted in both, as in Ianvs
}
"""Keys that are read as if they were elsewhere: former names, with a warning, and `using`."""


def with_moved_keys(document: Document) -> tuple[Document, list[ValidationError]]:
    """Return the document with `MOVED_KEYS` where they belong, and warnings, or errors for a key in both places."""
    problems = []
    for path, to in MOVED_KEYS.items():
        key, name, beside = path[-1], to[-1], at(document.data, *to[:-1])
        if not at(document.data, *path) or not isinstance(beside, dict):
            continue
        if key == "alone" and beside.get("name") != "slurm":
            continue
        message = f"'{key}'{' of the engine' if 'engine' in path else ''} is an old name. Write {name}."
        if both := bool(beside.get(str(name))):
            message = f"'{key}' is an old name of {name}, and both are given. Keep {name}."
            if key == "using":
                message = "using is given in dataset and in testenv. Keep one."
        if both or key != "using":
            code: ErrorCode = "conflicting-keys" if both else "renamed-key"
            problems.append(ValidationError(message, document.key_place(path), code=code))
        if not both:
            document = _moved(document, path, to)
    return document, problems


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
        document = _moved(document, (kind, *path), None if name is None else (kind, *path[:-1], name))
    return with_moved_keys(document)[0]


def _moved(document: Document, path: Steps, to: Steps | None) -> Document:
    """Return the document with the key at `path` at `to`; None: without the key."""
    depth = len(path)

    def moved(places: Mapping[Steps, Location]) -> dict[Steps, Location]:
        others = {steps: place for steps, place in places.items() if steps[:depth] != path}
        below = {steps[depth:]: place for steps, place in places.items() if steps[:depth] == path}
        return others if to is None else others | {(*to, *steps): place for steps, place in below.items()}

    data = copy.deepcopy(document.data)
    value = at(data, *path[:-1]).pop(path[-1])
    if to is not None:
        at(data, *to[:-1])[to[-1]] = value
    return replace(document, data=data, keys=moved(document.keys), values=moved(document.values))
