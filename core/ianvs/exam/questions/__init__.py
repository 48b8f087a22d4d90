"""Evaluation tasks: what the model computes besides predictions. A task is a class, in an entry point or a `url`."""

from typing import TYPE_CHECKING

from ianvs.base.former_names import former_module_names
from ianvs.exam.questions.evaluation_task import (
    ENTRY_POINTS,
    EvaluationTask,
    TaskContext,
    evaluation_tasks_of,
    find_evaluation_task,
    on_host,
)

__all__ = ["ENTRY_POINTS", "EvaluationTask", "TaskContext", "on_host", "evaluation_tasks_of", "find_evaluation_task"]

if not TYPE_CHECKING:
    __getattr__ = former_module_names(
        __name__,
        About="TaskContext",
        Question="EvaluationTask",
        question="find_evaluation_task",
        questions_of="evaluation_tasks_of",
    )
