"""The interface of scenarios and their tools: errors with a location, domains, samples by class, held-out parts."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.errors import ConfigError, ValidationError, one_line
from ianvs.base.former_names import former_names
from ianvs.base.seeding import generator
from ianvs.config.spec import DataTypeSpec, ScenarioSpec
from ianvs.exam.data.dataset import Dataset, Positions, Samples
from ianvs.exam.data.options import Options
from ianvs.exam.data.split import stratified_split
from ianvs.exam.data_types import DataType, data_type
from ianvs.exam.scenarios.exam import Exam, Round, Rules, TestSet


@dataclass(frozen=True)
class ScenarioRequest:
    """What a scenario builds an exam from.

    Attributes:
        dataset: The data.
        spec: The testenv's scenario block, if it has one.
        using: The domains that the testenv names, in their order.
        rounds: The number of rounds in the testenv's keys; None: not given.
        type_spec: An author's data type.
    """

    dataset: Dataset
    spec: ScenarioSpec | None
    using: tuple[str, ...]
    rounds: int | None
    type_spec: DataTypeSpec | None = None  # of an author's data type

    @cached_property
    def data_type(self) -> DataType:
        """The data type of the dataset."""
        return data_type(self.dataset.kind, self.type_spec)


@former_names(slips="option_errors")
class Scenario(Options, ABC):
    """A way in which data arrive: a class whose fields are its options.

    Every case builds the exam again and must get the same one, so random numbers come only from a seed among the
    options, `seed` or `order_seed`. If a testenv has `case` for a seed, the option holds the seed of the case.

    Attributes:
        names: The names of a scenario of ianvs; the first is the canonical one.
        rounds: Number of rounds.
        modifiers: Changes of rounds (modifiers.py).
    """

    names: ClassVar[tuple[str, ...]] = ()

    rounds: int | None = Field(None, ge=1)
    modifiers: dict[str, object] | None = None

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        """Return (key, number of rounds) if another option, or `using`, has an entry for each round."""
        return None

    def option_errors(self) -> Iterator[tuple[str, str]]:
        """Find errors in the options that can be found without the data, as (option, message)."""
        return iter(())

    def ordered_classes(self, request: ScenarioRequest) -> Sequence[int]:
        """Return all class indices in the order in which they come; by default, that of the class list."""
        return range(len(request.dataset.classes))

    @abstractmethod
    def build(self, request: ScenarioRequest) -> Exam:
        """Return the exam on the data, or call `refuse` for an option with which it can't be built."""


def refuse(request: ScenarioRequest, message: str, option: str | None = None) -> NoReturn:
    """Raise a ConfigError at the place of an option of the scenario, or of the scenario."""
    spec = request.spec
    place = None if spec is None else spec.places.get(option or "", spec.place)
    raise ConfigError([ValidationError(message, place, code="invalid-scenario")])


def class_labels(samples: Samples) -> NDArray[np.int64] | None:
    """Return (N,) class indices; None if labels are masks or strings."""
    return samples.y if samples.y.ndim == 1 and samples.y.dtype.kind in "iu" else None


def classes_in(dataset: Dataset, samples: Samples, positions: Positions) -> tuple[int, ...]:
    """Return the class indices at these positions, ascending.

    Masks are not searched: they have all classes of the class lists of their domains.
    """
    labels = class_labels(samples)
    if labels is not None:
        return tuple(np.unique(labels[positions]).tolist())
    if not dataset.domain_classes or samples.domains is None:
        return tuple(range(len(dataset.classes)))
    domains = np.unique(samples.domains[positions]).tolist()
    return tuple(sorted({index for domain in domains for index in dataset.domain_classes[domain]}))


def positions_by_class(labels: NDArray[np.int64]) -> dict[int, Positions]:
    """Return the positions of each class, ascending; classes are ascending, too."""
    return {int(name): np.flatnonzero(labels == name) for name in np.unique(labels)}


def named_rounds(request: ScenarioRequest, parts: list[Positions]) -> tuple[Round, ...]:
    """Return rounds that are named by their number."""
    dataset = request.dataset
    return tuple(
        Round(f"round {k}", part, classes_in(dataset, dataset.train, part)) for k, part in enumerate(parts, start=1)
    )


def whole_test_set(request: ScenarioRequest) -> tuple[TestSet, ...]:
    """Return the whole test part as the only test set."""
    dataset = request.dataset
    positions = np.arange(len(dataset.test))
    return (TestSet("test", positions, classes_in(dataset, dataset.test, positions)),)


def natural_domains(request: ScenarioRequest, rules: Rules, untaught: int = 0, asked_only: Sequence[str] = ()) -> Exam:
    """Return an exam with one round per domain.

    Args:
        request: The domains are in the order of `using`, else in that of their first samples.
        rules: The rules.
        untaught: How many of the last domains have a test set but no round.
        asked_only: Further domains of this kind, after all others.
    """
    dataset = request.dataset
    domain_of = dataset.train.domains
    names = request.using or (() if domain_of is None else tuple(dict.fromkeys(domain_of.tolist())))
    names = tuple(name for name in names if name not in asked_only)
    if not names:
        message = f"{dataset.name} knows no domains. Name them by `using`, in a column `domain`, or one per file"
        if class_labels(dataset.train) is not None:
            message += ", or make some with `permutation: true`, `rotation: [0, 30, 60]` or `corruption: [clean, fog]`"
        message += "."
        refuse(request, message)
    if domain_of is None:
        message = f"no sample belongs to one of the domains {one_line(names)}: no path holds such a folder. Make the"
        refuse(request, f"{message} domain a folder of the path or a column `domain`, or give an index for each.")
    taught = names[: len(names) - untaught]
    if not taught:
        refuse(request, f"{names[0]} is the only domain, and the last one is not taught.", "streaming")
    if request.rounds is not None and request.rounds != len(taught):
        each = "one for each" if not untaught else "one for each but the last"
        message = f"{request.rounds} rounds, but there are {len(names)} domains ({one_line(names)}), {each}."
        refuse(request, message, "rounds")
    rounds = tuple(Round(*_domain_part(request, dataset.train, name, "training")) for name in taught)
    return Exam(dataset, rounds, domain_tests(request, (*names, *asked_only)), rules)


def domain_tests(request: ScenarioRequest, names: tuple[str, ...]) -> tuple[TestSet, ...]:
    """Return one test set per domain."""
    return tuple(TestSet(*_domain_part(request, request.dataset.test, name, "test")) for name in names)


def _domain_part(
    request: ScenarioRequest, samples: Samples, domain: str, part: str
) -> tuple[str, Positions, tuple[int, ...]]:
    """Return (name, positions, classes) of a domain's round or test set.

    Classes are those of the domain's own class list, else those that occur.
    """
    positions = np.empty(0, np.int64) if samples.domains is None else np.flatnonzero(samples.domains == domain)
    if not len(positions):
        refuse(request, f"the domain '{domain}' has no {part} samples.")
    dataset = request.dataset
    return domain, positions, dataset.domain_classes.get(domain) or classes_in(dataset, samples, positions)


def hold_out(exam_round: Round, dataset: Dataset, ratio: float, seed: int) -> tuple[Positions, Positions]:
    """Split a round into (positions to train on, positions held out), both in the round's order.

    Args:
        exam_round: The round.
        dataset: The data.
        ratio: Share to train on, 0 < ratio <= 1. The split is random, class by class where samples have one. Every
            class keeps a sample to train on.
        seed: The seed.
    """
    if not 0 < ratio <= 1:
        raise ConfigError(
            [ValidationError(f"`train_ratio` is {ratio}; it must be above 0 and at most 1.", code="out-of-range")]
        )
    labels = class_labels(dataset.train)
    rest, taken = stratified_split(
        None if labels is None else labels[exam_round.train],
        len(exam_round.train),
        1 - ratio,
        generator(seed, 0, f"hold-out of {exam_round.name}"),
    )
    return exam_round.train[rest], exam_round.train[taken]
