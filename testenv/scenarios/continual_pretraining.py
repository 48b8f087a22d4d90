"""Continual pre-training: stages of data without labels, judged by how well a model adapts to downstream tasks.

METHODS: survey arXiv 2302.00487, scenario CPT. After each stage a fresh copy of the learner is adapted to each
downstream task on labelled samples; its answers are among the classes of that task.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.errors import closest, one_line
from ianvs.base.seeding import generator
from ianvs.exam.scenarios.exam import Exam, Round, Rules, TestSet
from ianvs.exam.scenarios.request import ScenarioRequest, natural_domains, positions_by_class, refuse
from ianvs.testenv.scenarios.class_incremental import ByClasses, group_name, labels_required

_GROUPING = ("first", "sizes", "round_classes", "class_order", "order_seed")


class ContinualPretraining(ByClasses):
    """Rounds without labels, and a test set with samples to adapt on for each downstream task.

    stages: the samples of groups of "classes", as in class-incremental and with its options, or "domains".

    downstream: "rounds", a task for each stage, which is about what that stage showed; or a list of tasks, each a list
    of class names. shots: labelled samples of each class to adapt on, drawn by `seed`; None: all there are.
    """

    names: ClassVar[tuple[str, ...]] = ("continual-pre-training", "CPT")

    stages: Literal["classes", "domains"] = "classes"
    downstream: Literal["rounds"] | list[list[str | int]] = "rounds"
    shots: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)

    def listed(self, using: tuple[str, ...]) -> tuple[str, int] | None:
        return ("using", len(using)) if using and self.stages == "domains" else super().listed(using)

    def option_errors(self) -> Iterator[tuple[str, str]]:
        if self.stages == "domains":
            for option in _GROUPING:
                if option in self.model_fields_set:
                    yield (
                        option,
                        f"`{option}` belongs to `stages: classes`, and this is `stages: domains`. Take it out.",
                    )
        tasks = [] if isinstance(self.downstream, str) else self.downstream
        if not all(tasks) or self.downstream == []:
            yield "downstream", "a downstream task is a list of class names, such as `[[cat, dog], [car, bus]]`."

    def build(self, request: ScenarioRequest) -> Exam:
        labels, _ = labels_required(request, "continual-pre-training")
        rules = Rules(
            "continual-pre-training",
            task_in_training=True,
            task_in_testing=True,
            output_space="task",
            training_labels=False,
        )
        if self.stages == "domains":
            shown = natural_domains(request, rules)
            rounds, tests = shown.rounds, shown.tests
        else:
            rounds, tests = self.class_rounds(request, rules.scenario)
        if self.downstream == "rounds":
            tasks = [(test, round_.train) for test, round_ in zip(tests, rounds, strict=True)]
        else:
            tasks = _named_tasks(request, self.downstream)
        return Exam(
            request.dataset,
            tuple(_unlabelled(round_) for round_ in rounds),
            tuple(self._adapted(request, labels, *task) for task in tasks),
            rules,
        )

    def _adapted(
        self,
        request: ScenarioRequest,
        labels: NDArray[np.int64],
        test: TestSet,
        available: NDArray[np.int64],
    ) -> TestSet:
        if self.shots is None:
            return replace(test, adapt=available)
        rng = generator(self.seed, 0, f"shots for {test.name}")
        drawn = []
        for name, positions in positions_by_class(labels[available]).items():
            if len(positions) < self.shots:
                class_name = request.dataset.classes[name]
                message = (
                    f"{test.name} has {len(positions)} training samples of class '{class_name}', not {self.shots}."
                )
                refuse(request, f"{message} Set fewer `shots`.", "shots")
            drawn.append(available[rng.permutation(positions)[: self.shots]])
        return replace(test, adapt=np.sort(np.concatenate(drawn)))


def _unlabelled(round_: Round) -> Round:
    """Return the round without classes, because no labels are given."""
    return replace(round_, classes=(), labels=np.full(len(round_.train), -1, dtype=np.int64))


def _named_tasks(request: ScenarioRequest, listed: list[list[str | int]]) -> list[tuple[TestSet, NDArray[np.int64]]]:
    """Return (test set, labelled training samples) for each list of class names."""
    train, test = labels_required(request, "continual-pre-training")
    index = {name: position for position, name in enumerate(request.dataset.classes)}
    tasks: dict[str, tuple[TestSet, NDArray[np.int64]]] = {}
    for names in listed:
        for name in map(str, names):
            if name not in index:
                message = f"there is no class '{name}'.{closest(name, index)} There are: {one_line(list(index))}."
                refuse(request, message, "downstream")
        classes = tuple(dict.fromkeys(index[str(name)] for name in names))
        title = group_name(request, classes)
        if title in tasks:
            title = f"{title} ({len(tasks) + 1})"  # a long list of classes is named after its first class
        tested, available = (np.flatnonzero(np.isin(y, classes)) for y in (test, train))
        if not len(tested) or not len(available):
            refuse(request, f"the downstream task {title} has no training or no test samples.", "downstream")
        tasks[title] = (TestSet(title, tested, classes), available)
    return list(tasks.values())
