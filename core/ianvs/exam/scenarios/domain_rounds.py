"""Rounds and test sets of the domains that the data know."""

from __future__ import annotations

import numpy as np

from ianvs.base.errors import one_line
from ianvs.exam.data.dataset import Positions, Samples
from ianvs.exam.scenarios.exam import Exam, Round, Rules, TestSet
from ianvs.exam.scenarios.request import ScenarioRequest, class_labels, classes_in, refuse


def natural_domains(request: ScenarioRequest, rules: Rules, untaught: int = 0) -> Exam:
    """One round per domain of the data, in the order of `using`, else in that of their first samples.

    untaught: how many of the last domains are asked alone.
    """
    dataset = request.dataset
    known = dataset.train.domains
    names = request.using or (() if known is None else tuple(dict.fromkeys(known.tolist())))
    if not names:
        message = f"{dataset.name} knows no domains. Name them by `using`, in a column `domain`, or one per file"
        if class_labels(dataset.train) is not None:
            message += ", or make some with `permutation: true`, `rotation: [0, 30, 60]` or `corruption: [clean, fog]`"
        message += "."
        refuse(request, message)
    if known is None:
        message = f"no sample belongs to one of the domains {one_line(names)}: no path holds such a folder. Make the"
        refuse(request, f"{message} domain a folder of the path or a column `domain`, or give an index for each.")
    taught = names[: len(names) - untaught]
    if not taught:
        refuse(request, f"{names[0]} is the only domain, and the last one is not taught.", "streaming")
    if request.rounds is not None and request.rounds != len(taught):
        each = "one for each" if not untaught else "one for each but the last"
        message = f"{request.rounds} rounds, but there are {len(names)} domains ({one_line(names)}), {each}."
        refuse(request, message, "rounds")
    rounds = tuple(Round(*_of_domain(request, dataset.train, name, "training")) for name in taught)
    return Exam(dataset, rounds, domain_tests(request, names), rules)


def domain_tests(request: ScenarioRequest, names: tuple[str, ...]) -> tuple[TestSet, ...]:
    """One test set per domain."""
    return tuple(TestSet(*_of_domain(request, request.dataset.test, name, "test")) for name in names)


def _of_domain(
    request: ScenarioRequest, samples: Samples, domain: str, part: str
) -> tuple[str, Positions, tuple[int, ...]]:
    """(name, positions, classes) of its round or test set; classes as its own class list has them, else what occurs."""
    positions = np.empty(0, np.int64) if samples.domains is None else np.flatnonzero(samples.domains == domain)
    if not len(positions):
        refuse(request, f"the domain '{domain}' has no {part} samples.")
    dataset = request.dataset
    return domain, positions, dataset.domain_classes.get(domain) or classes_in(dataset, samples, positions)
