"""Modifiers of the rounds of any scenario: few shots, a long tail, wrong labels, hidden labels.

METHODS F.1, modifiers. They are independent of the scenario and are applied to its rounds, in the order long_tail,
few_shot, label_noise, labelled. Test sets are never changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ianvs.base.errors import Location, ValidationError
from ianvs.base.seeding import generator
from ianvs.exam.data.options import Options, check_options
from ianvs.exam.data.split import stratified_split
from ianvs.exam.scenarios.exam import Exam, Round
from ianvs.exam.scenarios.request import Scenario, ScenarioRequest, class_labels, positions_by_class, refuse

Labels = NDArray[np.int64]


class _Modifier(Options):
    """A modifier that can be given by its main option alone. main: that option, and its description."""

    main: ClassVar[tuple[str, str]]

    @model_validator(mode="before")
    @classmethod
    def _needed(cls, value: object) -> object:
        name, meaning = cls.main
        if isinstance(value, dict) and name not in value:
            raise ValueError(f"it needs `{name}`, {meaning}; found {value!r}.")
        return value


class FewShot(_Modifier):
    """Fewer samples. shots: samples of each class in a round. first: whether the first round is reduced, too."""

    main = ("shots", "a number of samples")

    shots: int = Field(ge=1)
    first: bool = False


class LabelNoise(_Modifier):
    """Wrong labels. rate: their share.

    Kind: symmetric: any other class of the round; pairflip: the round's next class.
    """

    main = ("rate", "a share of wrong labels")

    rate: float = Field(ge=0, lt=1)
    kind: Literal["symmetric", "pairflip"] = "symmetric"


class Modifiers(Options):
    """All modifiers.

    Attributes:
        few_shot: A number or {shots, first}.
        label_noise: A rate or {rate, kind}.
        labelled: Share of samples with a label.
        long_tail: Samples of the last class as a share of those of the first; those between decrease geometrically.
    """

    few_shot: FewShot | None = None
    labelled: float | None = Field(None, gt=0, le=1)
    label_noise: LabelNoise | None = None
    long_tail: float | None = Field(None, gt=0, le=1)
    seed: int = Field(0, ge=0)


def parse_modifiers(
    value: Mapping[str, object], place: Location | None
) -> tuple[Modifiers | None, list[ValidationError]]:
    """Parse `modifiers`. Returns (modifiers, []), or (None, errors at `place`)."""
    given, mistakes = dict(value), []
    parts: dict[str, type[_Modifier]] = {"few_shot": FewShot, "label_noise": LabelNoise}
    for name, part in parts.items():
        if (setting := value.get(name)) is not None:
            whole = setting if isinstance(setting, dict) else {part.main[0]: setting}
            given[name], problems = check_options(part, whole, name, place, {})
            mistakes += problems
    modifiers, problems = check_options(Modifiers, given, "modifiers", place, {})
    problems += mistakes
    return None if problems else modifiers, problems


def apply_modifiers(exam: Exam, request: ScenarioRequest, scenario: Scenario, modifiers: Modifiers) -> Exam:
    """Return the exam with smaller rounds or other labels. Raises ConfigError where that is impossible."""
    labels = class_labels(exam.dataset.train)
    if labels is None:
        message = f"`modifiers` need one class per sample; {exam.dataset.name} is a {exam.dataset.kind} dataset."
        refuse(request, f"{message} Take them out.", "modifiers")
    if not exam.rules.training_labels and any((modifiers.few_shot, modifiers.label_noise, modifiers.labelled)):
        message = f"{exam.rules.scenario} shows no labels, so only `long_tail` can modify it"
        refuse(request, f"{message}; `shots` says how many samples there are to adapt on.", "modifiers")
    rounds = list(exam.rounds)
    if modifiers.long_tail is not None:
        stays = long_tail(
            labels, scenario.ordered_classes(request), modifiers.long_tail, generator(modifiers.seed, 0, "long tail")
        )
        rounds = [_reduce_round(request, labels, round_, stays[round_.train]) for round_ in rounds]
    for index, round_ in enumerate(rounds):
        rng = {purpose: generator(modifiers.seed, index + 1, purpose) for purpose in ("few-shot", "noise", "withheld")}
        if modifiers.few_shot is not None and (index or modifiers.few_shot.first):
            chosen = few_shot(labels[round_.train], modifiers.few_shot.shots, rng["few-shot"])
            round_ = _reduce_round(request, labels, round_, chosen)
        if modifiers.label_noise is not None:
            round_labels = labels[round_.train]
            classes = [c for c in round_.classes if c in round_labels]
            if len(classes) < 2 and modifiers.label_noise.rate:
                message = f"the round of {round_.name} has one class, so no label can be wrong. Set fewer `rounds`"
                refuse(request, f"{message}, or no `label_noise`.", "modifiers")
            wrong = add_label_noise(round_labels, classes, modifiers.label_noise, rng["noise"])
            round_ = replace(round_, labels=wrong)
        if modifiers.labelled is not None:
            round_labels = labels[round_.train] if round_.labels is None else round_.labels
            round_ = replace(round_, labels=hide_labels(round_labels, modifiers.labelled, rng["withheld"]))
        rounds[index] = round_
    return replace(exam, rounds=tuple(rounds))


def long_tail(labels: Labels, order: Sequence[int], ratio: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return (N,) bool: of the n samples of the c-th of C classes in `order`, round(n * ratio ** (c / (C - 1))) stay.

    At least one of each class stays (Cui et al. 2019, who fix the ratio of the largest class to the smallest).
    """
    stays = np.zeros(len(labels), dtype=bool)
    by_class = positions_by_class(labels)
    for rank, name in enumerate(order):
        positions = by_class.get(name, np.empty(0, np.int64))
        stay = max(1, int(len(positions) * ratio ** (rank / max(1, len(order) - 1)) + 0.5))
        stays[rng.permutation(positions)[:stay]] = True
    return stays


def few_shot(labels: Labels, shots: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return (N,) bool, which samples stay: `shots` of each class, or all if there are fewer."""
    stays = np.zeros(len(labels), dtype=bool)
    for positions in positions_by_class(labels).values():
        stays[rng.permutation(positions)[:shots]] = True
    return stays


def add_label_noise(labels: Labels, classes: Sequence[int], noise: LabelNoise, rng: np.random.Generator) -> Labels:
    """Return (N,) labels of which round(rate * N) are wrong, each one of `classes`, which are all that occur."""
    noisy_labels = labels.astype(np.int64)
    chosen = rng.permutation(len(labels))[: int(len(labels) * noise.rate + 0.5)]
    rank = {name: position for position, name in enumerate(classes)}
    ranks = np.array([rank[int(name)] for name in labels[chosen]], dtype=np.int64)
    step = rng.integers(1, len(classes), len(chosen)) if noise.kind == "symmetric" and len(chosen) else 1
    noisy_labels[chosen] = np.asarray(classes, dtype=np.int64)[(ranks + step) % len(classes)]
    return noisy_labels


def hide_labels(labels: Labels, share: float, rng: np.random.Generator) -> Labels:
    """Return (N,) labels of which round((1 - share) * N) are -1, class by class.

    At least one of each class keeps its label.
    """
    remaining = labels.astype(np.int64)
    remaining[stratified_split(labels, len(labels), 1 - share, rng)[1]] = -1
    return remaining


def _reduce_round(request: ScenarioRequest, labels: Labels, round_: Round, stays: NDArray[np.bool_]) -> Round:
    """Return `round_` with some of its samples, and without the classes that have none left."""
    if not stays.any():
        refuse(request, f"the round of {round_.name} is left without samples. Change `modifiers`.", "modifiers")
    gone = set(labels[round_.train].tolist()) - set(labels[round_.train[stays]].tolist())
    return replace(
        round_,
        train=round_.train[stays],
        classes=tuple(c for c in round_.classes if c not in gone),
        labels=None if round_.labels is None else round_.labels[stays],
    )
