"""Domain-incremental learning: the same question in every round, asked of data that look different.

METHODS: survey arXiv 2302.00487, scenario DIL. All classes in every round, one shared head; the task's identity may be
used in training and is hidden in testing. Multi-domain-incremental learning is its sibling in which each domain has a
class list of its own, and the domain is known in testing too.
"""

from __future__ import annotations

import numpy as np
from pydantic import Field, model_validator

from core.data.dataset import Samples
from core.errors import one_line
from core.scenarios.exam import Exam, Round, Rules, TestSet, Transform
from core.scenarios.request import Request, ScenarioOptions, class_labels, classes_in, classes_of, refuse
from core.scenarios.transforms import Permutation, Rotation

__all__ = [
    "DomainIncrementalOptions",
    "MultiDomainOptions",
    "domain_incremental",
    "domain_tests",
    "ianvs_domains",
    "multi_domain_incremental",
]


class DomainIncrementalOptions(ScenarioOptions):
    """Without options: the data's own domains. Else made from one source, every round being all samples, transformed.

    permutation: pixels in a fixed random order, another one per round (the first as they are); `rounds` and `seed`.
    rotation: an angle in degrees per round.
    """

    permutation: bool = False
    rotation: list[int | float] | None = Field(None, min_length=1)
    seed: int | None = Field(None, ge=0)

    @model_validator(mode="after")
    def _one_way(self) -> DomainIncrementalOptions:
        if self.permutation and self.rotation is not None:
            raise ValueError("`permutation` and `rotation` are two ways to make domains. Keep one of them.")
        if self.rotation is not None and len(set(self.rotation)) < len(self.rotation):
            raise ValueError("`rotation` lists an angle twice; every angle is a domain of its own.")
        if self.seed is not None and not self.permutation:
            raise ValueError("`seed` belongs to `permutation: true`; nothing else here is random. Take it out.")
        return self

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        if self.rotation is not None:
            return "rotation", len(self.rotation)
        return ("using", len(using)) if using and not self.permutation else None


class MultiDomainOptions(ScenarioOptions):
    """None but `rounds`, which has to be the number of domains."""

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        return ("using", len(using)) if using else None


def domain_incremental(request: Request) -> Exam:
    """One round and one test set per domain, natural or made."""
    options: DomainIncrementalOptions = request.options
    if options.rotation is not None:
        if request.dataset.train.x.ndim != 4:
            refuse(request, "`rotation` needs pictures; these samples are none.", "rotation")
        return _made(request, [(f"{angle} degrees", Rotation(angle)) for angle in options.rotation])
    if options.permutation:
        if request.rounds is None:
            refuse(request, "say how many `rounds` of permuted pixels there are.", "permutation")
        seed = options.seed or 0
        permuted = [(f"permutation {k}", Permutation(seed, k)) for k in range(2, request.rounds + 1)]
        return _made(request, [("identity", None), *permuted])
    return natural_domains(request, _rules("domain-incremental"))


def multi_domain_incremental(request: Request) -> Exam:
    """One round and one test set per domain, each with the class list of its domain (Garg et al., WACV 2022).

    The domain is known in training and in testing: a model answers with what it has for that domain.
    """
    rules = Rules("multi-domain-incremental", task_in_training=True, task_in_testing=True, output_space="task")
    return natural_domains(request, rules)


def ianvs_domains(request: Request) -> Exam:
    """What Ianvs does where a testenv names domains and no scenario."""
    return natural_domains(request, _rules("ianvs-domains"))


def natural_domains(request: Request, rules: Rules) -> Exam:
    """One round per domain of the data, in the order of `using`, else in that of their first samples."""
    dataset = request.dataset
    names = request.using or _found(dataset.train)
    if not names:
        message = (
            f"{dataset.name} knows no domains. Name them by `using` or in a column `domain`, "
            "or make some with `permutation: true` or `rotation: [0, 30, 60]`."
        )
        refuse(request, message)
    if request.rounds is not None and request.rounds != len(names):
        message = f"{request.rounds} rounds, but there are {len(names)} domains ({one_line(names)}), one for each."
        refuse(request, message, "rounds")
    parts = []
    for name in names:
        positions = _positions(dataset.train, name)
        if not len(positions):
            refuse(request, f"the domain '{name}' has no training samples.")
        parts.append(Round(name, positions, classes_of(dataset, dataset.train, positions, name)))
    return Exam(dataset, tuple(parts), domain_tests(request, names), rules)


def domain_tests(request: Request, names: tuple[str, ...]) -> tuple[TestSet, ...]:
    """One test set per domain."""
    dataset = request.dataset
    tests = []
    for name in names:
        positions = _positions(dataset.test, name)
        if not len(positions):
            refuse(request, f"the domain '{name}' has no test samples.")
        tests.append(TestSet(name, positions, classes_of(dataset, dataset.test, positions, name)))
    return tuple(tests)


def _made(request: Request, transforms: list[tuple[str, Transform | None]]) -> Exam:
    dataset = request.dataset
    if class_labels(dataset.train) is None or dataset.train.x.dtype == object:
        message = f"domains can be made of samples with one class each; {dataset.name} is a {dataset.kind} dataset."
        refuse(request, message)
    train, test = np.arange(len(dataset.train)), np.arange(len(dataset.test))
    taught = classes_in(dataset, dataset.train, train)
    asked = classes_in(dataset, dataset.test, test)
    rounds = tuple(Round(name, train, taught, transform) for name, transform in transforms)
    tests = tuple(TestSet(name, test, asked, transform) for name, transform in transforms)
    return Exam(dataset, rounds, tests, _rules("domain-incremental"))


def _rules(label: str) -> Rules:
    return Rules(label, task_in_training=True, task_in_testing=False, output_space="all")


def _found(samples: Samples) -> tuple[str, ...]:
    return () if samples.domains is None else tuple(dict.fromkeys(samples.domains.tolist()))


def _positions(samples: Samples, domain: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    if samples.domains is None:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(samples.domains == domain)
