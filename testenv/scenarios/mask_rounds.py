"""Rounds of classes in masks: the images of a round, and the content of its masks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ianvs.base.errors import closest
from ianvs.exam.scenarios.exam import Round, TestSet
from ianvs.exam.scenarios.request import ScenarioRequest, refuse

BACKGROUND = "background"
CUTS = ("overlapping", "disjoint", "sequential")
NAMED = 3  # classes in the name of a round


def mask_rounds(scenario: Any, request: ScenarioRequest) -> tuple[tuple[Round, ...], tuple[TestSet, ...]]:
    """Return a round and a test set for each group of classes, by the options of ByClasses.

    Args:
        scenario: The options.
        request: The data, whose labels are masks.

    Raises:
        ConfigError: At an option that does not fit the data.
    """
    dataset, cut = request.dataset, scenario.cut or "overlapping"
    if cut not in CUTS:
        refuse(request, f"`cut: {cut}` is not for masks. Write {', '.join(CUTS[:-1])} or {CUTS[-1]}.", "cut")
    background = _background(scenario.background, request)
    groups = _groups(scenario, request, background)
    held, tested = (
        request.data_type.membership(part.y, len(dataset.classes)) for part in (dataset.train, dataset.test)
    )
    assert held is not None and tested is not None
    rounds, tests = [], []
    for k, group in enumerate(groups):
        seen = [background, *(c for earlier in groups[: k + 1] for c in earlier)]
        later = [c for c in range(len(dataset.classes)) if c not in seen]
        mine = held[:, group].any(axis=1)
        if cut != "overlapping":
            mine &= ~held[:, later].any(axis=1)
        classes = (background, *group) if k == 0 else group
        name = _name([dataset.classes[c] for c in group])
        if not mine.any():
            condition = "" if cut == "overlapping" else " without a class of a later round"
            refuse(request, f"no training image{condition} has a class of the round of {name}.", "cut")
        shown = tuple(seen) if cut == "sequential" else None
        rounds.append(Round(name, np.flatnonzero(mine), classes, None, None, True, shown, background))
        containing = np.flatnonzero(tested[:, group].any(axis=1))
        if scenario.tests == "containing" and not len(containing):
            refuse(request, f"no test image has a class of the round of {name}. Leave out `tests`.", "tests")
        whole = np.arange(len(dataset.test))
        tests.append(TestSet(name, containing if scenario.tests == "containing" else whole, classes))
    return tuple(rounds), tuple(tests)


def _background(given: str | int | None, request: ScenarioRequest) -> int:
    names = request.dataset.classes
    if given is None and BACKGROUND not in names:
        message = f"which class is the background of these masks? Name it: `background: {names[0]}`."
        refuse(request, message, "background")
    wanted = BACKGROUND if given is None else given
    position = names.index(str(wanted)) if str(wanted) in names else wanted if isinstance(wanted, int) else -1
    if not 0 <= position < len(names):
        refuse(request, f"there is no class '{given}'.{closest(str(given), names)}", "background")
    return position


def _groups(scenario: Any, request: ScenarioRequest, background: int) -> list[tuple[int, ...]]:
    """Return the classes of each round without the background, which counts in no size."""
    if scenario.round_classes is not None:
        groups = [tuple(c for c in group if c != background) for group in scenario.class_groups(request)]
    else:
        order = [c for c in scenario.ordered_classes(request) if c != background]
        ends = np.cumsum(scenario.sizes_of(request, len(order))).tolist()
        groups = [tuple(order[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
    if not all(groups):
        refuse(request, "a round has no class but the background.", "round_classes")
    return groups


def _name(names: Sequence[str]) -> str:
    return "+".join(names) if len(names) <= NAMED else f"{names[0]}+{len(names) - 1} more"
