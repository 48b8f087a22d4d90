"""Lifelong learning's mode multi-inference: nothing is trained; several models answer each sample together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ianvs.base.errors import PluginError
from ianvs.kubeedge.calls import Estimator
from ianvs.kubeedge.datafiles import paths_and_label
from ianvs.kubeedge.knowledge import source_of
from ianvs.kubeedge.outcome import Outcome
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.artifact import Model, Task
from ianvs.kubeedge.provided.datasources import BaseDataSource

__all__ = ["multi_inference"]

_NEEDED = ("task_allocation", "task_remodeling", "inference_integrate")
_OF_PREDICT: Mapping[str, Any] = {"with_nms": False, "model_forward_result": None, "only_nms": None, "conf": None}


def multi_inference(case: Case) -> Outcome:
    """The integrated result of each test sample."""
    missing = [type_ for type_ in _NEEDED if case.modules.get(type_) is None]
    if missing:
        raise PluginError(f"mode multi-inference needs modules {', '.join(_NEEDED)}; {', '.join(missing)} is missing.")
    model = Estimator(case.need("basemodel"))
    modules = [case.made(type_) for type_ in _NEEDED]
    data = case.source(case.data("test"), "inference", paths_and_label)
    results = []
    for i in range(len(data.x)):
        sample = source_of(data, data.x[i : i + 1], None, "test")
        with case.timed("predict"):
            results.append(_one(case, model, sample, *modules))
    return Outcome(result=results)


def _one(case: Case, model: Estimator, sample: BaseDataSource, *modules: Callable[..., Any]) -> object:
    allocation, remodeling, integrate = modules
    with case.calling("task_allocation", "call"):
        sample, numbers = allocation(task_extractor=None, samples=sample)
    with case.calling("task_remodeling", "call"):
        paths, told = remodeling(samples=sample, mappings=numbers)
        records = [Model(index, entry, path, {}) for index, entry, path in told]
    tasks: list[Task] = []
    result = None
    for path in paths:
        for record in records:
            with case.calling("basemodel", "load"):
                model.load(record.model)
            task = Task(record.entry, path)
            with case.calling("basemodel", "predict"):
                task.result = model.predict(path, **_OF_PREDICT)
            task.model = record
            tasks.append(task)
        with case.calling("inference_integrate", "call"):
            result = integrate(tasks=tasks)
    return result
