"""Rounds and test sets of the domains that the data know."""

from __future__ import annotations

import numpy as np

from ianvs.data.dataset import Samples
from ianvs.errors import one_line
from ianvs.scenarios.exam import Exam, Round, Rules, TestSet
from ianvs.scenarios.request import ScenarioRequest, class_labels, classes_of, refuse

__all__ = ["domain_tests", "natural_domains"]


def natural_domains(request: ScenarioRequest, rules: Rules, untaught: int = 0) -> Exam:
    """One round per domain of the data, in the order of `using`, else in that of their first samples.

    untaught: how many of the last domains are asked alone.
    """
    dataset = request.dataset
    names = request.using or _found(dataset.train)
    if not names:
        message = f"{dataset.name} knows no domains. Name them by `using`, in a column `domain`, or one per file"
        if class_labels(dataset.train) is not None:
            message += ", or make some with `permutation: true`, `rotation: [0, 30, 60]` or `corruption: [clean, fog]`"
        message += "."
        refuse(request, message)
    if dataset.train.domains is None:
        message = f"no sample belongs to one of the domains {one_line(names)}: no path holds such a folder. Make the"
        refuse(request, f"{message} domain a folder of the path or a column `domain`, or give an index for each.")
    taught = names[: len(names) - untaught]
    if not taught:
        refuse(request, f"{names[0]} is the only domain, and the last one is not taught.", "streaming")
    if request.rounds is not None and request.rounds != len(taught):
        each = "one for each" if not untaught else "one for each but the last"
        message = f"{request.rounds} rounds, but there are {len(names)} domains ({one_line(names)}), {each}."
        refuse(request, message, "rounds")
    parts = []
    for name in taught:
        positions = _positions(dataset.train, name)
        if not len(positions):
            refuse(request, f"the domain '{name}' has no training samples.")
        parts.append(Round(name, positions, classes_of(dataset, dataset.train, positions, name)))
    return Exam(dataset, tuple(parts), domain_tests(request, names), rules)


def domain_tests(request: ScenarioRequest, names: tuple[str, ...]) -> tuple[TestSet, ...]:
    """One test set per domain."""
    dataset = request.dataset
    tests = []
    for name in names:
        positions = _positions(dataset.test, name)
        if not len(positions):
            refuse(request, f"the domain '{name}' has no test samples.")
        tests.append(TestSet(name, positions, classes_of(dataset, dataset.test, positions, name)))
    return tuple(tests)


def _found(samples: Samples) -> tuple[str, ...]:
    return () if samples.domains is None else tuple(dict.fromkeys(samples.domains.tolist()))


def _positions(samples: Samples, domain: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if samples.domains is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(samples.domains == domain)
