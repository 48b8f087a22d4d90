"""An exam described by the names of its samples: enough to share it, compare it and build it again."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from ianvs.base.entry_points import installed
from ianvs.base.errors import DataError, PluginError, closest, code_of, one_line, shown_path
from ianvs.exam.data.dataset import Dataset, Positions, Samples, Transform
from ianvs.exam.data.options import Options
from ianvs.exam.scenarios.exam import Exam, Round, Rules, Stream, TestSet
from ianvs.plugins.loader import load_object

VERSION = 1
TRANSFORMS = "ianvs.transforms"
"""The group of entry points by which packages name the transformations that a manifest can hold: dataclasses."""


class _Transform(Options):
    name: str
    options: dict[str, object]


class _Part(Options):
    name: str
    classes: list[str]
    transform: _Transform | None
    samples: list[str]


class _Round(_Part):
    """A round.

    Attributes:
        samples: Names of training samples.
        labels: Class indices, -1 where withheld; None: the dataset's own.
        limited: Whether labels are restricted to the round's classes, or to `shown_classes`.
        background: The class of all other pixels in masks.
    """

    labels: list[int] | None = None
    limited: bool = False
    shown_classes: list[str] | None = None
    background: str | None = None


class _TestSet(_Part):
    """A test set. samples: names of test samples. adapt: names of training samples to adapt on."""

    adapt: list[str] | None = None


class _Rules(Options):
    scenario: str
    task_in_training: bool
    task_in_testing: bool
    output_space: Literal["all", "seen", "task"]
    passes: int | None = Field(ge=1)
    boundaries: bool
    training_labels: bool
    test_sets: Literal["all", "future"] = Field(alias="asked")
    unseen: Literal["none", "classes", "rounds"] = "none"


class _Stream(Options):
    batch: int = Field(ge=1)
    eval_every: int | None = Field(ge=1)
    shuffled: bool


class _Manifest(Options):
    version: int
    dataset: str
    fingerprint: str
    classes: list[str]
    rules: _Rules
    stream: _Stream | None
    rounds: list[_Round] = Field(min_length=1)
    tests: list[_TestSet] = Field(min_length=1)


def manifest(exam: Exam) -> dict[str, object]:
    """Return a JSON value: the dataset's fingerprint, the rules, and the sample names of all rounds and test sets."""
    dataset = exam.dataset

    def part(described: Round | TestSet, ids: NDArray[np.str_]) -> dict[str, object]:
        return {
            "name": described.name,
            "classes": [dataset.classes[index] for index in described.classes],
            "transform": _transform_record(described.transform),
            "samples": ids.tolist(),
        }

    train, test = dataset.train.ids, dataset.test.ids
    return {
        "version": VERSION,
        "dataset": dataset.name,
        "fingerprint": dataset.fingerprint,
        "classes": list(dataset.classes),
        "rules": exam.rules.to_json(),
        "stream": None if exam.stream is None else asdict(exam.stream),
        "rounds": [
            part(r, train[r.train])
            | {"labels": None if r.labels is None else r.labels.tolist()}
            | ({"limited": True} if r.limited else {})
            | _of_masks(r, dataset.classes)
            for r in exam.rounds
        ],
        "tests": [
            part(t, test[t.test]) | {"adapt": None if t.adapt is None else train[t.adapt].tolist()} for t in exam.tests
        ],
    }


def _of_masks(round_: Round, names: tuple[str, ...]) -> dict[str, object]:
    shown, background = round_.shown_classes, round_.background
    masks: dict[str, object] = {} if shown is None else {"shown_classes": [names[index] for index in shown]}
    return masks if background is None else masks | {"background": names[background]}


def save_manifest(exam: Exam, path: Path) -> None:
    """Write the manifest of `exam`, without blanks."""
    path.write_text(json.dumps(manifest(exam), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")


def read_manifest(path: Path) -> Mapping[str, object]:
    """Return the content of a manifest file. Raises DataError, which names the file, if it is missing or no json."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"{shown_path(path)} can't be read: {error.strerror}.", code="unreadable-file") from None
    except ValueError as error:
        raise DataError(
            f"{shown_path(path)} is no manifest: it is not json ({error}).", code="unreadable-data"
        ) from None
    if not isinstance(content, dict):
        raise DataError(f"{shown_path(path)} is no manifest: it holds no mapping.", code="wrong-type")
    return content


def load_manifest(dataset: Dataset, content: Mapping[str, object], source: str = "the manifest") -> Exam:
    """Return the exam described by a manifest, on the same data.

    Args:
        dataset: The data.
        content: What `manifest` returned.
        source: Its name in errors.

    Raises:
        DataError: If it is no manifest, or of another version or other data.
    """
    if content.get("version") != VERSION:
        raise DataError(
            f"{source} has version {content.get('version')!r}; this ianvs reads version {VERSION}.",
            code="invalid-value",
        )
    try:
        parsed = _Manifest.model_validate(content)
    except ValidationError as error:
        errors = [(d["loc"], d["msg"]) for d in error.errors(include_url=False, include_input=False)]
        mistakes = [f"`{'.'.join(map(str, place))}` {detail[0].lower()}{detail[1:]}" for place, detail in errors]
        raise DataError(f"{source} is not a manifest: {one_line(mistakes, 3)}.", code="invalid-value") from None
    if (parsed.stream is None) != parsed.rules.boundaries:
        message = "`rules.boundaries` is false where there is a `stream`, and true where there is none"
        raise DataError(f"{source} contradicts itself: {message}.", code="conflicting-keys")
    if parsed.rules.output_space == "task" and not parsed.rules.task_in_testing:
        message = "`rules.output_space` is task, and `rules.task_in_testing` is false"
        raise DataError(f"{source} contradicts itself: {message}.", code="conflicting-keys")
    if (parsed.dataset, parsed.fingerprint) != (dataset.name, dataset.fingerprint):
        raise DataError(
            f"{source} was made on {parsed.dataset} with fingerprint {parsed.fingerprint[:12]}, and the data here are "
            f"{dataset.name} with fingerprint {dataset.fingerprint[:12]}. They must have the same content: use the "
            "same files and the same options of `dataset`.",
            code="mismatched-data",
        )
    if tuple(parsed.classes) != dataset.classes:
        raise DataError(f"{source} has other classes than {dataset.name}, or in another order.", code="mismatched-data")
    train, test = _position_by_name(dataset.train), _position_by_name(dataset.test)
    index = {name: position for position, name in enumerate(dataset.classes)}

    def indices(names: Sequence[str]) -> tuple[int, ...]:
        if unknown := [name for name in names if name not in index]:
            raise DataError(f"{dataset.name} has no class {one_line(unknown, 3)}.", code="unknown-class")
        return tuple(index[name] for name in names)

    def read(described: _Part, where: Mapping[str, int]) -> tuple[str, Positions, tuple[int, ...], Transform | None]:
        return (
            described.name,
            _positions(where, described.samples),
            indices(described.classes),
            _transform_of(described.transform),
        )

    def labels_of(described: _Round) -> NDArray[np.int64] | None:
        if described.labels is None:
            return None
        labels = np.array(described.labels, dtype=np.int64)
        if len(labels) != len(described.samples) or (
            len(labels) and not -1 <= labels.min() <= labels.max() < len(index)
        ):
            raise DataError("`labels` is one class index per sample, -1 where it is withheld.", code="invalid-value")
        return labels

    rounds: list[Round] = []
    tests: list[TestSet] = []
    try:
        for r in parsed.rounds:
            shown = None if r.shown_classes is None else indices(r.shown_classes)
            background = None if r.background is None else indices([r.background])[0]
            rounds.append(Round(*read(r, train), labels_of(r), r.limited, shown, background))
        for t in parsed.tests:
            tests.append(TestSet(*read(t, test), None if t.adapt is None else _positions(train, t.adapt)))
    except DataError as error:
        part = [*parsed.rounds, *parsed.tests][len(rounds) + len(tests)]
        raise DataError(f"{source}, {part.name}: {error}", code=error.code) from None
    stream = None if parsed.stream is None else Stream(**parsed.stream.model_dump())
    return Exam(dataset, tuple(rounds), tuple(tests), Rules(**parsed.rules.model_dump()), stream)


def _transform_record(transform: Transform | None) -> dict[str, object] | None:
    """Return {"name", "options"}, from which `_transform_of` restores the transformation."""
    if transform is None:
        return None
    kind = type(transform)
    value = f"{kind.__module__}:{kind.__qualname__}"
    for name, point in installed(TRANSFORMS).items():
        if point.value == value:
            return {"name": name, "options": dict(vars(transform))}
    return {"name": kind.__name__, "options": {}}


def _transform_of(described: _Transform | None) -> Transform | None:
    """Return the transformation of a `_transform_record`. Raises DataError for an unknown one."""
    if described is None:
        return None
    name, options, transforms = described.name, described.options, installed(TRANSFORMS)
    if name not in transforms:
        message = (
            f"there is no transformation '{name}'.{closest(name, transforms)} There are: {one_line(list(transforms))}."
        )
        raise DataError(message, code="invalid-choice")
    try:
        made: Transform = load_object(None, name, TRANSFORMS)(**options)
    except PluginError as error:
        raise DataError(str(error), code=code_of(error, "unloadable-plugin")) from None
    except TypeError:
        raise DataError(f"the transformation '{name}' can't be made with {options!r}.", code="invalid-option") from None
    return made


def _position_by_name(samples: Samples) -> dict[str, int]:
    """Return the position of each sample by its name."""
    positions = {name: position for position, name in enumerate(samples.ids.tolist())}
    if len(positions) < len(samples):
        raise DataError(
            "the data have two samples of one name, so a manifest can't tell them apart.", code="duplicate-entry"
        )
    return positions


def _positions(where: Mapping[str, int], names: Sequence[str]) -> Positions:
    if not names:
        raise DataError("it has no samples.", code="empty-value")
    if len(set(names)) < len(names):
        twice = one_line([name for name, count in Counter(names).items() if count > 1], 3)
        raise DataError(f"it lists {twice} more than once.", code="duplicate-entry")
    unknown = [name for name in names if name not in where]
    if unknown:
        raise DataError(f"the data have no sample {one_line(unknown, 3)}. Was the file edited?", code="mismatched-data")
    return np.array([where[name] for name in names], dtype=np.int64)
