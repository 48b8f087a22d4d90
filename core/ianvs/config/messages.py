"""Converts pydantic's errors to messages for the author of a file: with the place, the known keys, and where a key
belongs.
"""

import re
import typing
from collections.abc import Iterator, Sequence
from functools import cache

import pydantic
from pydantic_core import ErrorDetails

from ianvs.base.error_codes import ErrorCode
from ianvs.base.errors import ValidationError, closest, code_of, one_line
from ianvs.base.secrets import is_secret
from ianvs.config.models import FILE_KINDS
from ianvs.config.models.base import ConfigProblem, at
from ianvs.config.models.section import ByYamlType, Spec
from ianvs.config.strict_yaml import Document, Steps, described

GPU_WORDS = ("gpu", "GPU", "cuda:0", "gpu:0", "nvidia")
GPU_IS_CUDA = " Write cuda for a GPU; `gpus: [0]` says which one."

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
}
_BOUNDS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_FORMS = {
    "<text>": "text",
    "<list>": "a list",
    "<mapping>": "a mapping",
    "<number>": "a number",
    "<truth>": "true or false",
}
_EXAMPLES = {
    "an entry of hyperparameters": "Write '- learning_rate: {values: [0.1, 0.01]}'.",
    "an entry of sort_by": "Write '- accuracy: descend'.",
    "sort_by": "Write '- accuracy: descend', one line for each metric.",
    "dataset": "Write 'name: ...' below it for a built-in source, or 'train_index: ...' and 'test_index: ...'.",
    "an entry of algorithms": "Write '- name: ...' with 'url: ...' below it.",
    "an entry of modules": "Write '- type: basemodel' with 'name: ...' and 'url: ...' below it.",
}


def problems_of(
    error: pydantic.ValidationError, model: type[Spec], document: Document, kind: str
) -> Iterator[ValidationError]:
    """Yield the errors of the section `kind` of `document`, which did not fit `model`."""
    section = at(document.data, kind)
    for details in error.errors(include_url=False):
        path = existing_steps(details["loc"], section)
        beside = details["type"] == "missing" and not path and (details["loc"][-1],) in document.keys
        # In a tuple, pydantic counts entries that are right.
        counted = details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]
        if not (beside or counted):  # otherwise it is reported already, for a top-level key or for the entries
            for problem in _problems_of(details, path, model, section, kind):
                yield to_validation_error(problem, document, kind)


def to_validation_error(problem: ConfigProblem, document: Document, kind: str) -> ValidationError:
    path = (kind, *problem.path)
    location = document.key_place(path) if problem.key else document.value_place(path)
    return ValidationError(problem.message, location, code=problem.code)


def existing_steps(loc: Steps, data: object) -> Steps:
    """Return pydantic's `loc` without steps that are not in the file: names of forms, and missing keys."""
    path: Steps = ()
    for step in loc:
        exists = step in data if isinstance(data, dict) else isinstance(data, list) and isinstance(step, int)
        if exists:
            path, data = (*path, step), at(data, step)
    return path


def _problems_of(
    details: ErrorDetails, path: Steps, model: type[Spec], data: object, kind: str
) -> Iterator[ConfigProblem]:
    if details["type"] == "unexpected_keyword_argument":
        yield _unknown_key(path, model, kind)
    elif details["type"] == "missing":
        yield from _missing(str(details["loc"][-1]), path, model, data, kind)
    elif details["type"] == "value_error":
        error = details["ctx"]["error"]
        yield ConfigProblem(str(error), path, key=False, code=code_of(error, "invalid-value"))
    else:
        yield ConfigProblem(f"{label((kind, *path))} {_mismatch(details, path)}", path, key=False, code=_code(details))


def _unknown_key(path: Steps, model: type[Spec], kind: str) -> ConfigProblem:
    key = str(path[-1])
    known_keys = [name for section in sections_at(model, path[:-1]) for name in section.known_keys()]
    hint = unknown_key_hint(key, known_keys, kind)
    where = label(tuple(step for step in (kind, *path[:-1]) if isinstance(step, str) or "hyperparameters" in path))
    return ConfigProblem(f"unknown key '{key}' in {where}.{hint}", path, code="unknown-key")


def unknown_key_hint(key: str, known_keys: Sequence[str], kind: str) -> str:
    """Return with a leading blank where an unknown key belongs, a near key, or the known ones.

    Args:
        key: The key.
        known_keys: Those of its section.
        kind: The type of the file, "benchmarkingjob", "testenv" or "algorithm".
    """
    plural = closest(key, known_keys) if f"{key}s" in known_keys else ""
    listed = one_line(list(dict.fromkeys(known_keys)))
    return plural or home_of(key, kind) or closest(key, known_keys) or f" Known keys: {listed}."


def _missing(key: str, path: Steps, model: type[Spec], data: object, kind: str) -> Iterator[ConfigProblem]:
    sections = [section for section in sections_at(model, path) if key in section.known_keys()]
    known_keys = {name for section in sections for name in section.known_keys()}
    given = at(data, *path) or {}
    misspelt = [name for name in given if name not in known_keys and closest(name, [key])]
    if not misspelt:
        description = sections[0].known_keys()[key].description if sections else ""
        meaning = f" It is {description}." if description else ""
        where = f" of {label((kind, *path))}" if "hyperparameters" in path else f" in {_section_name(kind, path)}"
        yield ConfigProblem(f"key '{key}' is missing{where}.{meaning}", path, code="missing-key")
    elif any(section.options_in(given) for section in sections):  # otherwise it is reported as an unknown key
        for name in misspelt:
            message = f"unknown key '{name}' in {_section_name(kind, path)}.{closest(name, [key])}"
            yield ConfigProblem(message, (*path, name), code="unknown-key")


def _code(details: ErrorDetails) -> ErrorCode:
    """Return the error code of an invalid value."""
    kind = details["type"]
    if kind in ("too_short", "string_too_short"):
        return "empty-value" if details.get("ctx", {}).get("min_length", 1) == 1 else "wrong-length"
    if kind == "too_long":
        return "wrong-length"
    if kind == "literal_error":
        return "invalid-choice"
    return "out-of-range" if kind in (*_BOUNDS, "finite_number") else "wrong-type"


def _section_name(kind: str, path: Steps) -> str:
    return [kind, *(step for step in path if isinstance(step, str))][-1]


def _mismatch(details: ErrorDetails, path: Steps) -> str:
    """Describe the expected and the actual value at `path`, with a remedy."""
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    shown = described(value)
    if any(is_secret(step) for step in path if isinstance(step, str)) and isinstance(value, str | int | float):
        shown = "a value that is not shown"
    if kind in ("too_short", "string_too_short"):
        wanted = context.get("min_length", 1)
        if wanted == 1:
            return f"is empty. Write {'a value' if isinstance(value, str) else 'at least one'}."
        return f"should have {wanted} entries, found {len(value)}."
    if kind == "too_long":
        return f"should have {context['max_length']} entries, found {len(value)}."
    if kind == "literal_error":
        return _choice(re.findall(r"'([^']*)'", str(context["expected"])), value, shown)
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return f"should be {words} {context[name]:g}, found {shown}."
    if kind == "union_tag_invalid":
        forms = [_FORMS[tag] for tag in re.findall(r"'(<\w+>)'", str(context["expected_tags"]))]
        return f"should be {' or '.join(filter(None, [', '.join(forms[:-1]), forms[-1]]))}, found {shown}."
    if kind == "wrong_form":
        return f"should be {context['expected']}, found {shown}."
    expected = _EXPECTED.get(kind, "something else")
    return f"should be {expected}, found {shown}.{_remedy(expected, value, path, shown)}"


def _choice(choices: list[str], value: object, shown: str) -> str:
    hint = closest(value, choices) if isinstance(value, str) else ""
    if value in GPU_WORDS and "cuda" in choices:
        hint = GPU_IS_CUDA
    if value == "" and ">" in choices:
        hint = " Put an operator in quotes: '>'."
    one_of = choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    return f"should be {one_of}, found {shown}.{hint}"


def _remedy(expected: str, value: object, path: Steps, shown: str) -> str:
    scalar = isinstance(value, str | int | float) and shown == described(value)  # secrets are not shown
    if example := _EXAMPLES.get(label(path) if path else ""):
        return f" {example}"
    if expected == "a mapping" and "hyperparameters" in path and isinstance(path[-1], str):
        return " Write its values as {values: [...]}."
    if (first_and_last := re.fullmatch(r"(\d+)\s*(?:-|\.\.|to)\s*(\d+)", str(value))) and expected == "a list":
        first, last = map(int, first_and_last.groups())
        return f" Write [{', '.join(map(str, range(first, last + 1)))}]." if 0 <= last - first < 100 else ""
    if expected == "a list" and scalar and path[-1:] == ("seeds",) and type(value) is int and 1 < value <= 100:
        return f" Write [{value}] for this seed, or [{', '.join(map(str, range(value)))}] for {value} seeds."
    if expected == "a list" and scalar:
        return f" Write [{_as_yaml(value)}]."
    if expected == "text" and scalar:
        number = isinstance(value, int | float) and not isinstance(value, bool)  # 001 would be shown as 1
        return " Put it in quotes." if number else f" Put it in quotes: '{_as_yaml(value)}'."
    if expected == "true or false" and value in ("yes", "on", "no", "off"):
        return f" Write {'true' if value in ('yes', 'on') else 'false'}."
    return ""


def _as_yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def sections_at(model: type[Spec], path: Steps) -> list[type[Spec]]:
    """Return the possible sections at `path` below `model`; several if a value has several forms."""
    sections = [model]
    for step in path:  # a position in a list, or the name of an entry, does not change the section
        keys = [
            section.known_keys()[step] for section in sections if isinstance(step, str) and step in section.known_keys()
        ]
        sections = [inner for key in keys for inner in _sections_in(key.form)] or sections
    return sections


def label(path: Steps) -> str:
    """Return the name of the value at `path` in messages: its last key."""
    if "hyperparameters" in path:
        below = path[path.index("hyperparameters") + 1 :]
        names = [step for step in below if isinstance(step, str)]
        if names:
            whole = f"hyperparameter '{names[0]}'"
            inside = "an entry of values" if path[-1] != names[-1] else names[-1]
            return whole if len(names) == 1 else f"{inside} of {whole}"
    names = [step for step in path if isinstance(step, str)]
    return f"an entry of {names[-1]}" if isinstance(path[-1], int) else names[-1]


def home_of(key: str, kind: str) -> str:
    """Return " It belongs in ..." for a key of a single section, of two in other files, or of the top of one file, in
    an error on a file of `kind`.
    """
    homes = _homes().get(key, set())
    if len(homes) == 2 and not any(kind == file or file == name for file, name in homes):
        places = [f"{name} of the {file} file" for file, name in sorted(homes)]
        return f" It belongs in {' or in '.join(places)}."
    if len(homes) > 1:
        homes = {(file, name) for file, name in homes if file == name}
    if len(homes) != 1:
        return ""
    ((file, name),) = homes
    suffix = "" if file == kind else " file" if name == file else f" of the {file} file"
    return f" It belongs in {'the ' if suffix == ' file' else ''}{name}{suffix}."


@cache
def _homes() -> dict[str, set[tuple[str, str]]]:
    """Return the (file, section) pairs that have a key, by key."""
    homes: dict[str, set[tuple[str, str]]] = {}
    for file, model in FILE_KINDS.items():
        for name, keys in _sections(file, model):
            for key in keys:
                homes.setdefault(key, set()).add((file, name))
    return homes


def _sections(name: str, model: type[Spec]) -> Iterator[tuple[str, set[str]]]:
    yield name, set(model.known_keys())
    for name, key in model.known_keys().items():
        for inner in _sections_in(key.form):
            yield from _sections(name, inner)


def _sections_in(form: object) -> Iterator[type[Spec]]:
    if isinstance(form, type) and issubclass(form, Spec):
        yield form
    forms = [vars(mark).values() for mark in getattr(form, "__metadata__", ()) if isinstance(mark, ByYamlType)]
    for inner in forms[0] if forms else typing.get_args(form):
        yield from _sections_in(inner)
