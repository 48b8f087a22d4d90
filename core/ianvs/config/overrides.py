"""`--set KEY=VALUE`: command-line overrides of file values, validated like file values.

A key is `seeds` or `rank.baseline` of the job, `scenario.rounds` or `dataset.name` of every testenv,
`learning_rate` of every algorithm that has it, or `ewc.learning_rate` of the one that is called so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ianvs.base.errors import ConfigError, Location, ValidationError, closest
from ianvs.base.secrets import without_secret
from ianvs.config.models import FILE_KINDS
from ianvs.config.models.base import at, entries
from ianvs.config.strict_yaml import Document, Steps, parse

_FILES = ("benchmarkingjob", "testenv")


@dataclass(frozen=True)
class Override:
    """A key and its new value.

    Attributes:
        key: The key, without the name of an algorithm.
        value: The new value.
        text: KEY=VALUE as it was given.
        kind: The file that has the key, "benchmarkingjob" or "testenv", or "algorithm" for a hyperparameter.
        algorithm: Name of the algorithm; "" for all that have this hyperparameter.
    """

    key: str
    value: object
    text: str
    kind: str = ""
    algorithm: str = ""

    @property
    def place(self) -> Location:
        return Location(Path(f"--set {without_secret(self.text)}"))


def parse_overrides(given_overrides: Sequence[str] | Mapping[str, object]) -> tuple[Override, ...]:
    """Parse "KEY=VALUE" strings, whose values are YAML, or a mapping. Raises ConfigError for other strings."""
    if isinstance(given_overrides, Mapping):
        return tuple(Override(key, value, f"{key}={value}") for key, value in given_overrides.items())
    overrides, problems = [], []
    for text in given_overrides:
        key, equals, value = text.partition("=")
        shown = f"--set {without_secret(text)}"
        if not equals or not key.strip():
            problems.append(
                ValidationError(
                    f"'{shown}' is not understood. Write --set KEY=VALUE.",
                    Location(Path("--set")),
                    code="invalid-override",
                )
            )
            continue
        try:
            given = parse(value, Path(shown)).data if value.strip() else None
        except ConfigError as error:
            problems += error.problems
            continue
        overrides.append(Override(key.strip(), given, text))
    if problems:
        raise ConfigError(problems)
    return tuple(overrides)


def assign_to_files(overrides: Sequence[Override], job: Document) -> tuple[list[Override], list[ValidationError]]:
    """Assign each override to its file or algorithm. Returns (overrides, errors in their keys)."""
    algorithm_entries = entries(job.data, "benchmarkingjob", "test_object", "algorithms")
    names = [name for _, entry in algorithm_entries if isinstance(name := at(entry, "name"), str)]
    placed: list[Override] = []
    problems: list[ValidationError] = []
    for override in overrides:
        owner = next((name for name in names if override.key.startswith(f"{name}.")), "")
        first, dot, _ = override.key.partition(".")
        kind = next((kind for kind in _FILES if first in FILE_KINDS[kind].known_keys()), "")
        if owner:
            key = override.key.removeprefix(f"{owner}.")
            placed.append(replace(override, key=key, kind="algorithm", algorithm=owner))
        elif kind or not dot:
            placed.append(replace(override, kind=kind or "algorithm"))
        else:
            known_keys = [*names, *(key for kind in _FILES for key in FILE_KINDS[kind].known_keys())]
            message = f"'{first}' is neither a key of the job or of a testenv, nor an algorithm of the job."
            problems.append(
                ValidationError(f"{message}{closest(first, known_keys)}", override.place, code="invalid-override")
            )
    shared = [override for override in placed if override.kind != "algorithm"]
    for n, again in enumerate(shared):
        if again.key in [override.key for override in shared[:n]]:
            message = f"'{again.key}' is set twice. Keep one."
            problems.append(ValidationError(message, again.place, code="duplicate-entry"))
    return placed, problems


def apply_overrides(document: Document, kind: str, overrides: Sequence[Override]) -> Document:
    """Return the document with the overrides of this kind. Their location is the command line.

    Raises ConfigError if a key leads through a value that has no keys.
    """
    data = document.data
    keys, values = dict(document.keys), dict(document.values)
    for override in overrides:
        if override.kind != kind or not isinstance(at(data, kind), dict):
            continue
        path: Steps = (kind, *override.key.split("."))
        data = _with(data, path, override)
        for where in [candidate for candidate in values if candidate[: len(path)] == path]:
            keys.pop(where, None)
            values.pop(where)
        for depth in range(2, len(path) + 1):  # also the location of a section that the file lacks
            keys.setdefault(path[:depth], override.place)
            values.setdefault(path[:depth], override.place)
    return replace(document, data=data, keys=keys, values=values)


def _with(data: object, path: Steps, override: Override) -> object:
    if not path:
        return override.value
    if isinstance(data, str):  # `scenario: class-incremental` is `scenario: {name: class-incremental}`
        data = {"name": data}
    if data is None:
        data = {}
    if not isinstance(data, dict):
        message = f"'{override.key}' is inside a list. Override the whole list, as in --set 'seeds=[0, 1]'."
        raise ConfigError([ValidationError(message, override.place, code="invalid-override")])
    return {**data, path[0]: _with(data.get(path[0]), path[1:], override)}
