"""Domains that are groups of classes: the label is the position of a class within its group.

The domain-incremental scenario of Split MNIST (van de Ven & Tolias 2019, arXiv 1904.07734, table 2): with five groups
of two digits the question is "is it the first or the second digit of its pair?", for the digits in order y mod 2.
"""

from dataclasses import replace

import numpy as np

from ianvs.exam.scenarios.exam import Exam, Rules
from ianvs.exam.scenarios.request import ScenarioRequest, refuse
from ianvs.testenv.scenarios.class_incremental import ByClasses


class GroupedClasses(ByClasses):
    """Round k brings the classes of the k-th of `rounds` groups of one size; labels are positions in the group."""

    def build(self, request: ScenarioRequest) -> Exam:
        names = request.dataset.classes
        groups = self.rounds or 1
        if len(names) % groups:
            message = f"{len(names)} classes can't be cut into {groups} groups of one size"
            refuse(request, f"{message}, and a label is a position in its group.", "class_groups")
        rounds, tests = self.class_rounds(request, "domain-incremental with `class_groups`")
        position = np.empty(len(names), dtype=np.int64)
        for round_ in rounds:
            position[list(round_.classes)] = np.arange(len(round_.classes))
        size = len(names) // groups
        dataset = replace(
            request.dataset,
            classes=tuple(str(place) for place in range(size)),
            train=replace(request.dataset.train, y=position[request.dataset.train.y]),
            test=replace(request.dataset.test, y=position[request.dataset.test.y]),
        )
        every = tuple(range(size))
        return Exam(
            dataset,
            tuple(replace(round_, classes=every) for round_ in rounds),
            tuple(replace(test, classes=every) for test in tests),
            Rules("domain-incremental", task_in_training=True, task_in_testing=False, output_space="all"),
        )
