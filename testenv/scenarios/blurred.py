"""Blurred-boundary continual learning: tasks with their own classes, some of whose samples come in other rounds.

METHODS: survey arXiv 2302.00487, scenario BBCL, recipes of F.1. Task identity is known in training and hidden in
testing. With `batch` the samples come as an online stream, and no task is told.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.seeding import generator
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.scenarios.exam import Exam, Round, Rules, Stream, TestSet
from ianvs.exam.scenarios.request import ScenarioRequest, classes_in, named_rounds, refuse, whole_test_set
from ianvs.testenv.scenarios.blurring import blurry, dirichlet, disjoint_classes, gaussian_order, i_blurry
from ianvs.testenv.scenarios.class_incremental import ByClasses, labels_required
from ianvs.testenv.scenarios.instance_incremental import rounds_required
from ianvs.testenv.scenarios.streaming import stream_option_errors

_OF_KIND: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "blurry": ("M", "first", "sizes", "round_classes", "class_order", "order_seed"),
        "i-blurry": ("N", "M", "first", "sizes", "round_classes", "class_order", "order_seed"),
        "dirichlet": ("alpha",),
        "gaussian": ("sigma", "class_order", "order_seed"),
    }
)
"""The options of each kind, besides the common ones."""

_TUNING = ("N", "M", "alpha", "sigma", "first", "sizes", "round_classes", "class_order", "order_seed")


class BlurredBoundary(ByClasses):
    """The rounds of class-incremental, and how their boundaries are blurred. All is drawn by `seed`.

    blurry: M percent of each round are samples of the other rounds' classes, evenly. i-blurry: N percent of the classes
    are in one round only; of each other class, M percent of the samples are in the rounds that are not its home.
    dirichlet: the shares of a class in the rounds are drawn with concentration alpha. gaussian: a class comes around
    its centre, with a width of sigma, a share of the whole stream.
    batch, eval_every: an online stream, as in the scenario online.
    blurry, i-blurry: a test set for the classes whose home each round is. dirichlet, gaussian: one test set of all.
    """

    names: ClassVar[tuple[str, ...]] = ("blurred-boundary", "BBCL", "blurred-boundary-continual-learning")

    kind: Literal["blurry", "i-blurry", "dirichlet", "gaussian"] = "blurry"
    M: float = Field(10, ge=0, le=100)
    N: float = Field(50, ge=0, le=100)
    alpha: float | None = Field(None, gt=0)
    sigma: float | None = Field(None, gt=0)
    seed: int = Field(0, ge=0)
    batch: int | None = Field(None, ge=1)
    eval_every: int | None = Field(None, ge=1)

    def option_errors(self) -> Iterator[tuple[str, str]]:
        for option in _TUNING:
            if option in self.model_fields_set and option not in _OF_KIND[self.kind]:
                kinds = " or ".join(f"`kind: {kind}`" for kind, options in _OF_KIND.items() if option in options)
                yield option, f"`{option}` belongs to {kinds}, and this is `kind: {self.kind}`. Take it out."
        for option in ("alpha", "sigma"):
            if option in _OF_KIND[self.kind] and getattr(self, option) is None:
                meaning = {
                    "alpha": "the concentration: about 0.1 is near to class-incremental, 100 to instance-incremental",
                    "sigma": "the width of a class, a share of the whole stream such as 0.1",
                }[option]
                yield "kind", f"`kind: {self.kind}` needs `{option}`, {meaning}."
        yield from stream_option_errors(self.batch, self.eval_every)

    def build(self, request: ScenarioRequest) -> Exam:
        dataset = request.dataset
        if self.kind in ("blurry", "i-blurry"):
            rounds, tests = self._of_homes(request)
        else:
            rounds, tests = self._without_homes(request), whole_test_set(request)
        rules = Rules("blurred-boundary", task_in_training=True, task_in_testing=False, output_space="seen")
        if self.batch is None:
            return Exam(dataset, rounds, tests, rules)
        stream = Stream(self.batch, self.eval_every, shuffled=self.kind != "gaussian")
        return Exam(dataset, rounds, tests, replace(rules, task_in_training=False, passes=1, boundaries=False), stream)

    def _of_homes(self, request: ScenarioRequest) -> tuple[tuple[Round, ...], tuple[TestSet, ...]]:
        rounds, tests = self.class_rounds(request, "blurred-boundary")
        labels = request.dataset.train.y
        groups, share = self.class_groups(request), self.M / 100
        if sum(map(len, groups)) > len(request.dataset.classes):
            refuse(request, "`round_classes` may name a class in one round only.", "round_classes")
        rng = generator(self.seed, 0, self.kind)
        if len(rounds) == 1 and share:
            refuse(request, "a single round has no other one to mix with. Set `rounds`.", "rounds")
        if self.kind == "blurry":
            parts = blurry(labels, [round_.train for round_ in rounds], share, rng)
        else:
            disjoint = disjoint_classes(groups, self.N / 100, rng)
            parts = i_blurry(labels, groups, disjoint, share, rng)
        mixed = []
        for round_, part, home in zip(rounds, parts, groups, strict=True):
            if not len(part):
                refuse(request, f"the round of {round_.name} is left without samples. Set a smaller `M`.", "M")
            mixed.append(replace(round_, train=part, classes=_classes(request.dataset, part, home)))
        return tuple(mixed), tests

    def _without_homes(self, request: ScenarioRequest) -> tuple[Round, ...]:
        labels, _ = labels_required(request, "blurred-boundary")
        rounds = rounds_required(request, len(labels))
        if self.kind == "gaussian":
            assert self.sigma is not None
            flow = gaussian_order(
                labels, self.ordered_classes(request), self.sigma, generator(self.seed, 0, "gaussian")
            )
            return named_rounds(request, np.array_split(flow, rounds))
        assert self.alpha is not None
        parts = dirichlet(labels, rounds, self.alpha, lambda attempt: generator(self.seed, attempt, "dirichlet"))
        if parts is None:
            message = f"with `alpha: {self.alpha}` one of {rounds} rounds is always empty. Set a larger `alpha`"
            refuse(request, f"{message}, or fewer `rounds`.", "alpha")
        return named_rounds(request, parts)


def _classes(dataset: Dataset, part: NDArray[np.int64], home: tuple[int, ...]) -> tuple[int, ...]:
    """Return the classes that occur, first those of the home."""
    present = classes_in(dataset, dataset.train, part)
    return (*(c for c in home if c in present), *(c for c in present if c not in home))
