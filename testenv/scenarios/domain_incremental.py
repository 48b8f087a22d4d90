"""Domain-incremental learning: the same task in every round, with data from another domain.

METHODS: survey arXiv 2302.00487, scenario DIL. All classes in every round, one shared head; the task's identity may be
used in training and is hidden in testing. In multi-domain-incremental learning, each domain has its own class list, and
the domain is known in testing too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from ianvs.base.errors import closest, one_line
from ianvs.base.seeding import generator
from ianvs.exam.data.dataset import Transform
from ianvs.exam.data.options import Options, check_options
from ianvs.exam.scenarios.exam import Exam, Round, Rules, TestSet
from ianvs.exam.scenarios.request import Scenario, ScenarioRequest, class_labels, classes_in, natural_domains, refuse
from ianvs.testenv.scenarios.corruptions import CORRUPTIONS, SEVERITIES, Corruption
from ianvs.testenv.scenarios.grouped_classes import GroupedClasses
from ianvs.testenv.scenarios.streaming import as_stream, stream_option_errors
from ianvs.testenv.scenarios.transforms import Permutation, Rotation

_CLEAN = ("clean", "none")


class _RandomAngles(Options):
    """Randomly drawn angles. random: how many. between: degrees, including the first and excluding the second."""

    random: int = Field(ge=1)
    between: list[float] = Field([0.0, 180.0], min_length=2, max_length=2)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if not self.between[0] < self.between[1]:
            raise ValueError("`between` names the smaller angle first.")
        return self


_Angles = Annotated[
    Annotated[list[int | float], Field(min_length=1), Tag("list")] | Annotated[dict[str, Any], Tag("random")],
    Discriminator(lambda value: "random" if isinstance(value, dict) else "list"),
]


class DomainIncremental(Scenario):
    """One round and one test set per domain.

    Without options: the data's own domains. Else made from one source, every round being all samples, transformed.
    permutation: pixels in a fixed random order, another one per round (the first as they are); `rounds` and `seed`.
    rotation: an angle in degrees per round; or {random: K, between: [low, high]}, K angles drawn by `seed`, from 0 to
    180 without `between`. corruption: a name, or {name, severity}, per round; `clean` is no corruption; `severity`, 1
    to 5, where an entry doesn't say it, and `seed`.
    class_groups: so many groups of classes, in the order of `class_order` or `order_seed`; a round brings one, and what
    is asked is the position of a class in its group (grouped_classes.py).
    streaming: of the data's own domains the last one is not taught, and after every round only those to come are asked
    (the streaming protocol of CLEAR, where one asks of a domain what one will teach of it).
    asked_only: of the data's own domains those that are asked in every round, after the others, and never taught.
    batch, eval_every: a stream, as in instance-incremental, domain after domain; shuffled: false keeps the order of the
    data within a domain.
    """

    names: ClassVar[tuple[str, ...]] = ("domain-incremental", "DIL")

    permutation: bool = False
    rotation: _Angles | None = None
    corruption: list[Any] | None = Field(None, min_length=1)
    severity: int = Field(3, ge=1, le=5)
    class_groups: int | None = Field(None, ge=1)
    class_order: list[str | int] | None = None
    order_seed: int | None = Field(None, ge=0)
    streaming: bool = False
    asked_only: list[str] = Field(default_factory=list)
    seed: int | None = Field(None, ge=0)
    batch: int | None = Field(None, ge=1)
    eval_every: int | None = Field(None, ge=1)
    shuffled: bool = True

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        made = {
            "permutation": self.permutation,
            "rotation": self.rotation is not None,
            "corruption": self.corruption is not None,
            "class_groups": self.class_groups is not None,
        }
        ways = [f"`{way}`" for way, given in made.items() if given]
        if len(ways) > 1:
            raise ValueError(f"{' and '.join(ways)} are {len(ways)} ways to make domains. Keep one of them.")
        if ways and self.streaming:
            raise ValueError(f"`streaming` is for the data's own domains, and {ways[0]} makes some. Keep one of them.")
        if self.asked_only and (ways or self.streaming):
            raise ValueError("`asked_only` is for the data's own domains, all others of which are taught. Take it out.")
        if isinstance(self.rotation, list) and len(set(self.rotation)) < len(self.rotation):
            raise ValueError("`rotation` lists an angle twice; every angle is a domain of its own.")
        random = self.permutation or self.corruption is not None or isinstance(self.rotation, dict)
        if self.seed is not None and not random:
            raise ValueError(
                "`seed` belongs to `permutation: true`, `corruption` or `rotation: {random: K}`; nothing else here is "
                "random. Take it out."
            )
        if self.class_groups is None and (self.class_order is not None or self.order_seed is not None):
            raise ValueError("`class_order` and `order_seed` belong to `class_groups`. Take them out.")
        if self.class_order is not None and self.order_seed is not None:
            raise ValueError("`class_order` and `order_seed` both say the order. Keep one of them.")
        if "severity" in self.model_fields_set and self.corruption is None:
            raise ValueError("`severity` belongs to `corruption`. Take it out.")
        return self

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        if self.rotation is not None:
            return "rotation", len(self.angles())
        if self.corruption is not None:
            return "corruption", len(self.corruption)
        if self.class_groups is not None:
            return "class_groups", self.class_groups
        return ("using", len(using) - self.streaming) if using and not self.permutation else None

    def option_errors(self) -> Iterator[tuple[str, str]]:
        yield from stream_option_errors(self.batch, self.eval_every)
        if not self.shuffled and self.batch is None:
            yield "shuffled", "`shuffled` is for a stream; set `batch` too, the samples in a chunk."
        yield from (("rotation", message) for message in self._random_angles()[1])
        entries = [self.corruption_of(entry) for entry in self.corruption or ()]
        yield from (("corruption", entry) for entry in entries if isinstance(entry, str))
        named = [entry for entry in entries if not isinstance(entry, str)]
        if len(set(named)) < len(named):
            yield "corruption", "`corruption` lists one twice with the same severity; each is a domain of its own."

    def _random_angles(self) -> tuple[_RandomAngles | None, list[str]]:
        """Return (the options of a random `rotation`, errors in them)."""
        if not isinstance(self.rotation, dict):
            return None, []
        options, problems = check_options(_RandomAngles, self.rotation, "rotation", None, {})
        return options, [problem.message for problem in problems]

    def angles(self) -> list[float]:
        """Return the degrees of each rotated round; empty if the options are wrong."""
        if isinstance(self.rotation, list):
            return [*self.rotation]
        drawn, _ = self._random_angles()
        if drawn is None:
            return []
        (low, high), count = drawn.between, range(1, drawn.random + 1)
        return [float(generator(self.seed or 0, k, "rotation").uniform(low, high)) for k in count]

    def corruption_of(self, entry: object) -> tuple[str, int] | str:
        """Return (name, severity) of an entry of `corruption`, with severity 0 for a clean domain, or an error
        message.
        """
        fields = entry if isinstance(entry, dict) else {"name": entry}
        name, severity = fields.get("name"), fields.get("severity", self.severity)
        if not isinstance(name, str) or set(fields) - {"name", "severity"}:
            return f"an entry of `corruption` is a name or {{name, severity}}, found {entry!r}."
        if name in _CLEAN:
            return "clean", 0
        if name not in CORRUPTIONS:
            names = one_line(["clean", *CORRUPTIONS])
            return f"there is no corruption '{name}'.{closest(name, CORRUPTIONS)} There are: {names}."
        if severity not in SEVERITIES or isinstance(severity, bool):
            return f"the severity of {name} is {severity!r}; it is a whole number from 1 to 5."
        return name, severity

    def ordered_classes(self, request: ScenarioRequest) -> Sequence[int]:
        """Return the order of classes; with `class_groups`, positions in a group."""
        return range(len(request.dataset.classes) // (self.class_groups or 1))

    def build(self, request: ScenarioRequest) -> Exam:
        exam = self._whole_rounds(request)
        return exam if self.batch is None else as_stream(exam, self.batch, self.eval_every, shuffled=self.shuffled)

    def _whole_rounds(self, request: ScenarioRequest) -> Exam:
        if self.class_groups is not None:
            rounds, order, seed = self.class_groups, self.class_order, self.order_seed
            return GroupedClasses(
                rounds=rounds, first=None, sizes=None, round_classes=None, class_order=order, order_seed=seed
            ).build(request)
        if self.rotation is not None:
            if request.dataset.train.x.ndim != 4:
                refuse(request, "`rotation` needs images; these samples are none.", "rotation")
            named = isinstance(self.rotation, list)
            angles = enumerate(self.angles(), start=1)
            return _made(request, [(f"{a} degrees" if named else f"rotation {k}", Rotation(a)) for k, a in angles])
        if self.corruption is not None:
            _require_unit_pictures(request)
            return _made(request, list(self._corrupted()))
        if self.permutation:
            if request.rounds is None:
                refuse(request, "say how many `rounds` of permuted pixels there are.", "permutation")
            seed = self.seed or 0
            permuted = [(f"permutation {k}", Permutation(seed, k)) for k in range(2, request.rounds + 1)]
            return _made(request, [("identity", None), *permuted])
        untaught = int(self.streaming)
        exam = natural_domains(request, _rules("domain-incremental"), untaught, self.asked_only)
        return replace(exam, rules=replace(exam.rules, test_sets="future")) if self.streaming else exam

    def _corrupted(self) -> Iterator[tuple[str, Transform | None]]:
        """Yield (name, transformation) of each domain. Each domain has its own noise."""
        for task, entry in enumerate(self.corruption or (), start=1):
            meant = self.corruption_of(entry)
            assert not isinstance(meant, str)
            name, severity = meant
            if severity:
                yield f"{name} {severity}", Corruption(name, severity, self.seed or 0, task)
            else:
                yield name, None


class MultiDomainIncremental(Scenario):
    """One round and one test set per domain, each with the class list of its domain (Garg et al., WACV 2022).

    The domain is known in training and in testing: a model answers with what it has for that domain. No options but
    `rounds`, which has to be the number of domains.
    """

    names: ClassVar[tuple[str, ...]] = ("multi-domain-incremental", "MDIL", "domain-aware")

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        return ("using", len(using)) if using else None

    def build(self, request: ScenarioRequest) -> Exam:
        rules = Rules("multi-domain-incremental", task_in_training=True, task_in_testing=True, output_space="task")
        return natural_domains(request, rules)


def _require_unit_pictures(request: ScenarioRequest) -> None:
    """Raise an error unless black and white have known values, as corruptions need them."""
    x = request.dataset.train.x
    if x.ndim != 4:
        refuse(request, "`corruption` needs images; these samples are none.", "corruption")
    first = np.asarray(x[:64])
    if x.dtype != np.uint8 and (x.dtype.kind != "f" or first.min() < 0 or first.max() > 1):
        message = "`corruption` needs images of whole numbers from 0 to 255 (uint8), or of numbers from 0 to 1."
        refuse(request, message, "corruption")


def _made(request: ScenarioRequest, transforms: list[tuple[str, Transform | None]]) -> Exam:
    dataset = request.dataset
    if class_labels(dataset.train) is None or dataset.train.x.dtype == object:
        message = f"domains can be made of samples with one class each; {dataset.name} is a {dataset.kind} dataset."
        refuse(request, message)
    train, test = np.arange(len(dataset.train)), np.arange(len(dataset.test))
    taught = classes_in(dataset, dataset.train, train)
    classes = classes_in(dataset, dataset.test, test)
    rounds = tuple(Round(name, train, taught, transform) for name, transform in transforms)
    tests = tuple(TestSet(name, test, classes, transform) for name, transform in transforms)
    return Exam(dataset, rounds, tests, _rules("domain-incremental"))


def _rules(label: str) -> Rules:
    return Rules(label, task_in_training=True, task_in_testing=False, output_space="all")
