"""Class-incremental rounds as a continuous stream: task-free and online continual learning.

METHODS: survey arXiv 2302.00487, scenarios TFCL and OCL. A learner gets small chunks and is told neither a task nor the
ends of rounds. Task-free: any number of passes over a chunk; online: each sample once.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from pydantic import Field

from ianvs.exam.scenarios.exam import Exam, Rules, Stream
from ianvs.exam.scenarios.request import ScenarioRequest, named_rounds, natural_domains, whole_test_set
from ianvs.testenv.scenarios.class_incremental import ByClasses
from ianvs.testenv.scenarios.streaming import too_often


class TaskFree(ByClasses):
    """The rounds of class-incremental as a stream without tasks.

    Of numbers to be estimated they are the domains, or the samples in their order, cut into `rounds`.
    batch: samples in a chunk. eval_every: samples between two examinations beside those at the end of a round.
    """

    names: ClassVar[tuple[str, ...]] = ("task-free", "TFCL", "task-free-continual-learning")

    batch: int = Field(10, ge=1)
    eval_every: int | None = Field(None, ge=1)

    def option_errors(self) -> Iterator[tuple[str, str]]:
        yield from too_often(self.batch, self.eval_every)

    def build(self, request: ScenarioRequest) -> Exam:
        return self._stream(request, "task-free", None)

    def _stream(self, request: ScenarioRequest, scenario: str, passes: int | None) -> Exam:
        rules = Rules(
            scenario,
            task_in_training=False,
            task_in_testing=False,
            output_space="seen",
            passes=passes,
            boundaries=False,
        )
        stream, dataset = Stream(self.batch, self.eval_every), request.dataset
        if dataset.train.y.dtype.kind != "f":
            return Exam(dataset, *self.class_rounds(request, scenario), rules, stream)
        if dataset.train.domains is not None:
            return replace(natural_domains(request, rules), stream=stream)
        parts = np.array_split(np.arange(len(dataset.train)), request.rounds or 1)
        return Exam(dataset, named_rounds(request, parts), whole_test_set(request), rules, stream)


class Online(TaskFree):
    """The stream of task-free, gone over once. passes: how often a learner may go over a chunk."""

    names: ClassVar[tuple[str, ...]] = ("online", "OCL", "online-continual-learning")

    passes: int = Field(1, ge=1)

    def build(self, request: ScenarioRequest) -> Exam:
        return self._stream(request, "online", self.passes)
