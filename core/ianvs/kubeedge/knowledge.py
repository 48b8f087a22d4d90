"""The knowledge base of lifelong learning: tasks with a model each, their training and prediction."""

import os
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ianvs.base.errors import PluginError
from ianvs.kubeedge.calls import Estimator, accepts, offer
from ianvs.kubeedge.case_storage import take_place
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.artifact import Model, Task, TaskGroup
from ianvs.kubeedge.provided.datasources import BaseDataSource, as_array
from ianvs.store.files import write_atomic

_MIN_SAMPLES = 10


def source_of(like: BaseDataSource, x: object, y: object, data_type: str | None = None) -> BaseDataSource:
    source = BaseDataSource(data_type or like.data_type)
    source.x, source.y = x, y
    return source


@dataclass
class Knowledge:
    """The known tasks: an extractor, which assigns samples to tasks, and a group with a model for each task.

    index: the file that describes them to plugins, below W.
    """

    index: str
    extractor: object = None
    groups: list[TaskGroup] = field(default_factory=list)
    given: list[str] = field(default_factory=list)  # modules whose attribute `models` is set by us

    @property
    def models(self) -> list[Model]:
        return [group.model for group in self.groups]

    # Training

    def train(self, case: Case, model: Estimator, data: BaseDataSource, r: int, initial: bool) -> None:
        """Train all tasks from scratch (initial), or continue each of them on the data of a round."""
        folder = case.folder("train", r)
        os.environ["CLOUD_KB_INDEX"], os.environ["OUTPUT_URL"] = self.index, folder
        os.environ["HAS_COMPLETED_INITIAL_TRAINING"] = str(not initial)
        if initial:
            self._initial(case, model, data, folder)
        elif len(data):
            self._update(case, model, data, folder)
        else:
            case.note(f"Round {r} has no data to train on: the models stay as they were.")
        self.index = str(Path(folder, "index.pkl"))
        seen_tasks = {"extractor": self.extractor, "task_groups": self.groups}
        write_atomic(Path(self.index), pickle.dumps({"seen_task": seen_tasks, "unseen_task": {}}))

    def _initial(self, case: Case, model: Estimator, data: BaseDataSource, folder: str) -> None:
        tasks, self.extractor, data = self._defined(case, model, data)
        groups = self._grouped(case, tasks)
        least = int(os.environ.get("MIN_TRAIN_SAMPLE") or _MIN_SAMPLES)
        rare = {}
        for i, group in enumerate(groups):
            trained = next((task for task in group.tasks if task.model and task.result), None)
            if not (group.samples and len(group.samples) >= least):
                rare[i] = group
            elif trained is not None:
                if not isinstance(trained.model, str):
                    trained.model = trained.model.save(model_name=f"{group.entry}.model")
                group.model = Model(i, trained.entry, trained.model, trained.result, trained.meta_attr)
            else:
                group.model = self._trained(case, model, group, i, folder)
        if rare:
            # Tasks with few samples share one model, which trains on all data after the others.
            with case.calling("basemodel", "train"), case.timed("train"):
                result = model.train(data)
            path = _saved(case, model, "global.model", folder)
            for i, group in rare.items():
                group.samples = data
                group.model = Model(i, group.entry, path, result, [task.meta_attr for task in group.tasks])
        self.groups = groups

    def _defined(self, case: Case, model: Estimator, data: BaseDataSource) -> tuple[list[Task], object, BaseDataSource]:
        definition = case.instantiate("task_definition")
        if definition is None:
            return [Task("global", data)], {"global": 0}, data
        with case.calling("task_definition", "call"):
            returned = offer(definition, data, model=model.instance)
            if not isinstance(returned, Sequence) or len(returned) != 3:
                raise PluginError("it has to return three things: tasks, extractor, source.", code="broken-contract")
            return list(returned[0]), returned[1], returned[2]

    def _grouped(self, case: Case, tasks: list[Task]) -> list[TaskGroup]:
        discovery = case.instantiate("task_relationship_discovery")
        if discovery is None:
            groups = [TaskGroup(task.entry, [task]) for task in tasks]
        else:
            with case.calling("task_relationship_discovery", "call"):
                groups = list(discovery(tasks))
        for i, group in enumerate(groups):
            if not hasattr(group, "tasks"):
                groups[i] = group = TaskGroup(getattr(group, "entry", "global"), [])
            if group.samples is None and group.tasks:
                group.samples = group.tasks[0].samples
        return groups

    def _trained(self, case: Case, model: Estimator, group: TaskGroup, i: int, folder: str) -> Model:
        with case.calling("basemodel", "train"), case.timed("train"):
            result = model.train(group.samples)
        is_path = isinstance(result, str)
        path = _saved(case, model, f"{group.entry}.{'pth' if is_path else 'model'}", folder)
        return Model(i, group.entry, path, {} if is_path else result, [task.meta_attr for task in group.tasks])

    def _update(self, case: Case, model: Estimator, data: BaseDataSource, folder: str) -> None:
        """Continue each task's model with all data of the round, unless a decision gives it a part."""
        again = case.instantiate("unseen_sample_re_recognition", self.index)
        if again is not None:
            with case.calling("unseen_sample_re_recognition", "call"):
                seen, unseen = again(data)
                data = source_of(data, _joined(seen.x, unseen.x), _joined(seen.y, unseen.y))
        decision = case.instantiate("task_update_decision", self.index)
        if decision is None:
            groups = self.groups
            for group in groups:
                group.samples = data
        else:
            with case.calling("task_update_decision", "call"):
                tasks, _ = offer(decision, data, task_type="seen_task")
            groups = self._grouped(case, tasks)
        self.groups = [group for group in groups if group.samples is not None and len(group.samples)]
        for i, group in enumerate(self.groups):
            before = group.model.model if group.model is not None else group.tasks[0].model
            with case.calling("basemodel", "load"):
                model.load(getattr(before, "model", before))
            group.model = self._trained(case, model, group, i, folder)

    # Answers

    def models_are_read(self, case: Case) -> None:
        """Set the present models in modules with an attribute `models`, at the beginning of an evaluation or
        inference.
        """
        for type_ in ("task_remodeling", "inference_integrate"):
            instance = case.modules.get(type_)
            ours = type_ in self.given or not hasattr(instance, "models")
            if ours and instance is not None and not isinstance(instance, dict):
                instance.models = self.models
                self.given = sorted({*self.given, type_})

    def predict(
        self, case: Case, model: Estimator, data: BaseDataSource, method: str = "predict", **keywords: object
    ) -> tuple[Any, list[Task]]:
        """Return results in the order of the samples, and the tasks that they came from, each with its own."""
        data, indices = self._allocated(case, data)
        sources, models = self._remodeled(case, data, indices)
        if not hasattr(model.instance, method):
            case.note(f"The basemodel has no {method}: its predict was called instead.")
            method = "predict"
        # In Ianvs the signature of predict determines the arguments of predict_score and predict_cloud.
        keywords = {name: value for name, value in keywords.items() if accepts(model.instance.predict, name)}
        pairs = zip(sources, models, strict=False)
        tasks = [answered(case, model, record, source, source.x, method, **keywords) for source, record in pairs]
        return self._integrated(case, tasks), tasks

    def _allocated(self, case: Case, data: BaseDataSource) -> tuple[BaseDataSource, ArrayLike]:
        allocation = case.instantiate("task_allocation")
        if allocation is None:
            return data, [0] * len(data.x)
        with case.calling("task_allocation", "call"):
            returned = allocation(task_extractor=self.extractor, samples=data)
            if not isinstance(returned, Sequence) or len(returned) != 2:
                raise PluginError(
                    "it has to return two things: the source, and for each sample the index of its task.",
                    code="broken-contract",
                )
            return returned[0], returned[1]

    def _remodeled(
        self, case: Case, data: BaseDataSource, indices: ArrayLike
    ) -> tuple[Iterable[BaseDataSource], Iterable[Model]]:
        models = self.models
        remodeling = case.instantiate("task_remodeling", models=models)
        if remodeling is not None:
            with case.calling("task_remodeling", "call"):
                sources, chosen = remodeling(samples=data, mappings=indices)
                return sources, chosen
        positions, sources, chosen = np.array(indices, dtype=int), [], []
        for i in np.unique(positions):
            rows = np.flatnonzero(positions == i)
            source = source_of(data, as_array(data.x)[rows], None)
            if data.data_type != "test":
                source.y = as_array(data.y)[rows]
            source.inx = rows.tolist()
            if data.meta_attr is not None:
                source.meta_attr = as_array(data.meta_attr)[rows]
            sources.append(source)
            chosen.append(models[i] if -len(models) <= i < len(models) else models[0])
        return sources, chosen

    def _integrated(self, case: Case, tasks: list[Task]) -> object:
        integrate = case.instantiate("inference_integrate", models=self.models)
        if integrate is not None:
            with case.calling("inference_integrate", "call"):
                return integrate(tasks=tasks)
        results: dict[int, Any] = {}
        for task in tasks:
            results.update(zip(task.samples.inx, task.result, strict=False))
        return as_array([results[i] for i in sorted(results)])


def answered(
    case: Case, model: Estimator, record: Model, samples: object, x: object, method: str = "predict", **keywords: object
) -> Task:
    """Return the task of `samples` with the predictions for x of the model in `record`, loaded by `model` if it is a
    path.
    """
    if isinstance(record.model, str):
        with case.calling("basemodel", "load"):
            model.load(record.model)
    task, answering = Task(record.entry, samples), model if isinstance(record.model, str) else Estimator(record.model)
    with case.calling("basemodel", method):
        task.result = answering.predict(x, method, **keywords)
    task.model = record
    return task


def _joined(*parts: NDArray[Any] | None) -> NDArray[Any]:
    return np.concatenate([part for part in parts if part is not None and len(part)] or [np.array([])])


def _saved(case: Case, model: Estimator, name: str, folder: str) -> str:
    """Let the model save itself, and move the file to FOLDER/seen_task/NAME. Raises PluginError if there is none."""
    name = name.replace(os.sep, "_")
    path = Path(tempfile.mkdtemp(), name)
    with case.calling("basemodel", "save"):
        model.instance.save(str(path))
        if not path.exists():
            raise PluginError(
                f"there is no file at {path} afterwards. Let save(path) write the file that it is given.",
                code="broken-contract",
            )
    target = Path(folder, "seen_task", name)
    take_place(path, target)
    shutil.rmtree(path.parent, ignore_errors=True)
    return str(target)
