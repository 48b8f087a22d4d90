"""What a scenario is, and what scenarios share: errors with a place, what labels say, domains, what rounds hold out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.errors import ConfigError, ValidationError, one_line
from ianvs.base.seeding import generator
from ianvs.config.spec import DataTypeSpec, ScenarioSpec
from ianvs.exam.data.dataset import Dataset, Positions, Samples
from ianvs.exam.data.options import Options
from ianvs.exam.data.split import stratified_split
from ianvs.exam.data_types import DataType, data_type
from ianvs.exam.scenarios.exam import Exam, Round, Rules, TestSet


@dataclass(frozen=True)
class ScenarioRequest:
    """What an exam is built from.

    spec: None where the testenv has no scenario block. using: the domains that it names, in their order. rounds: what
    its keys agree on, None where none of them says it.
    """

    dataset: Dataset
    spec: ScenarioSpec | None
    using: tuple[str, ...]
    rounds: int | None
    type_spec: DataTypeSpec | None = None  # of an author's data type

    @cached_property
    def data_type(self) -> DataType:
        return data_type(self.dataset.kind, self.type_spec)


class Scenario(Options, ABC):
    """A way in which data arrive: a class whose fields are its options.

    It draws nothing but by a seed among its options, `seed` or `order_seed`: every case builds the exam anew, and takes
    the same one. Where a testenv says `case` for a seed, the option holds the number of the case's seed.
    names: of one of ours; the first is its own. rounds: how many there are. modifiers: changes of what rounds bring
    (modifiers.py).
    """

    names: ClassVar[tuple[str, ...]] = ()

    rounds: int | None = Field(None, ge=1)
    modifiers: dict[str, object] | None = None

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        """(key, number of rounds) where another option, or `using`, lists something for each round."""
        return None

    def slips(self) -> Iterator[tuple[str, str]]:
        """(option, message) of each thing that is wrong within an option and can be said without the data."""
        return iter(())

    def ordered_classes(self, request: ScenarioRequest) -> Sequence[int]:
        """All class indices in the order in which they come; else in that of the class list."""
        return range(len(request.dataset.classes))

    @abstractmethod
    def build(self, request: ScenarioRequest) -> Exam:
        """The exam on the data. `refuse` says at which option it can't be built."""


def refuse(request: ScenarioRequest, message: str, option: str | None = None) -> NoReturn:
    """Raise a ConfigError that points at an option of the scenario, or at the scenario."""
    spec = request.spec
    place = None if spec is None else spec.places.get(option or "", spec.place)
    raise ConfigError([ValidationError(message, place, code="invalid-scenario")])


def class_labels(samples: Samples) -> NDArray[np.int64] | None:
    """(N,) class indices, or None where labels are pictures or texts."""
    return samples.y if samples.y.ndim == 1 and samples.y.dtype.kind in "iu" else None


def classes_in(dataset: Dataset, samples: Samples, positions: Positions) -> tuple[int, ...]:
    """The class indices that occur there, ascending.

    Label pictures are not searched: theirs are all of the class lists of the domains that occur there.
    """
    labels = class_labels(samples)
    if labels is not None:
        return tuple(np.unique(labels[positions]).tolist())
    if not dataset.domain_classes or samples.domains is None:
        return tuple(range(len(dataset.classes)))
    domains = np.unique(samples.domains[positions]).tolist()
    return tuple(sorted({index for domain in domains for index in dataset.domain_classes[domain]}))


def positions_by_class(labels: NDArray[np.int64]) -> dict[int, Positions]:
    """Where each class that occurs is found, ascending; classes ascending."""
    return {int(name): np.flatnonzero(labels == name) for name in np.unique(labels)}


def named_rounds(request: ScenarioRequest, parts: list[Positions]) -> tuple[Round, ...]:
    """Rounds that have no better name than their number."""
    dataset = request.dataset
    return tuple(
        Round(f"round {k}", part, classes_in(dataset, dataset.train, part)) for k, part in enumerate(parts, start=1)
    )


def everything_asked(request: ScenarioRequest) -> tuple[TestSet, ...]:
    """The whole test part as the only test set."""
    dataset = request.dataset
    positions = np.arange(len(dataset.test))
    return (TestSet("test", positions, classes_in(dataset, dataset.test, positions)),)


def natural_domains(request: ScenarioRequest, rules: Rules, untaught: int = 0, asked_only: Sequence[str] = ()) -> Exam:
    """One round per domain of the data, in the order of `using`, else in that of their first samples.

    untaught: how many of the last domains are asked alone. asked_only: domains that are, too, after all others.
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
    rounds = tuple(Round(*_of_domain(request, dataset.train, name, "training")) for name in taught)
    return Exam(dataset, rounds, domain_tests(request, (*names, *asked_only)), rules)


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


def hold_out(exam_round: Round, dataset: Dataset, ratio: float, seed: int) -> tuple[Positions, Positions]:
    """(positions to train on, positions held out) of a round, both in the round's order.

    ratio: share to train on, 0 < ratio <= 1; 1 holds nothing out. Drawn at random, class by class where samples have
    one; every class keeps a sample to train on.
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
