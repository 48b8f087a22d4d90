"""The records of lifelong learning: tasks, groups of tasks, and their models."""

from typing import Any

__all__ = ["Model", "Task", "TaskGroup"]


class Task:
    """The samples of one task. model, result: set after training or prediction."""

    def __init__(self, entry: object, samples: Any, meta_attr: object = None) -> None:
        self.entry, self.samples, self.meta_attr = entry, samples, meta_attr
        self.test_samples: object = None
        self.model: Any = None
        self.result: Any = None


class TaskGroup:
    """Tasks that share a model."""

    def __init__(self, entry: object, tasks: list[Task]) -> None:
        self.entry, self.tasks = entry, tasks
        self.samples: Any = None
        self.model: Any = None


class Model:
    """A stored model: `model` is its path, `index` the position of its group."""

    def __init__(self, index: int, entry: object, model: Any, result: object, meta_attr: object = None) -> None:
        self.index, self.entry, self.model, self.result = index, entry, model, result
        self.meta_attr = meta_attr
