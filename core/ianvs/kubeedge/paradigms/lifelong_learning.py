"""lifelonglearning: tasks with a model each, learned in rounds; samples of unseen tasks are found and learned."""

import os
import shutil
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.errors import PluginError
from ianvs.kubeedge.calls import Estimator, errors_in, offer, positionals
from ianvs.kubeedge.datafiles import paths_and_label
from ianvs.kubeedge.knowledge import Knowledge, answered, source_of
from ianvs.kubeedge.outcome import Outcome, number, numbers_of
from ianvs.kubeedge.plugin_case import Case
from ianvs.kubeedge.provided.artifact import Model, Task
from ianvs.kubeedge.provided.datasources import BaseDataSource, as_array
from ianvs.kubeedge.yaml.file_models import MULTI_INFERENCE_MODULES

_KINDS = ("model_train", "model_eval")
_OF_PREDICT: Mapping[str, Any] = {"with_nms": False, "model_forward_result": None, "only_nms": None, "conf": None}

Score = Mapping[str, object]  # value by name of the function of model_metric
Scores = list[tuple[object, Score]]  # by entry of a task
Row = dict[str, list[Score | str]]  # by "all", task and "task_avg", a cell for each of rounds 1..n


@dataclass
class _State:
    knowledge: Knowledge
    next: int
    rows: list[Row | None] = field(default_factory=list)  # by round; None: it was skipped
    record: list[tuple[Sized, Sized]] = field(default_factory=list)
    dropped: list[dict[str, object]] = field(default_factory=list)


class _Lifelong:
    def __init__(self, case: Case) -> None:
        self.case, self.mode = case, case.work.model_metric.mode
        self.model = Estimator(case.required_modules("basemodel"))
        self.n = case.work.exam.incremental_rounds
        self.matrix = self.mode in ("no-inference", "hard-example-mining")
        self.first = 0 if self.matrix else 1  # round
        untrained = Knowledge(str(case.root / "output" / "kb" / "index.pkl"))
        self.now: _State = case.state or _State(untrained, self.first)

    def round(self, train: str, test: str, r: int) -> bool:
        """Run a round. Returns whether it had samples, on which the model was evaluated if the mode requires it."""
        case, knowledge = self.case, self.now.knowledge
        if r == self.first or self.mode == "no-inference":
            data = case.source(train, "train", paths_and_label)
            knowledge.train(case, self.model, data, r, initial=r == self.first)
        else:
            results, unseen = self.infer(train, r)
            self.now.record.append((results, unseen.x))
            if not len(unseen.x):
                return False
            knowledge.train(case, self.model, unseen, r, initial=False)
        if not self.matrix or (r == 0 and self.mode != "no-inference"):
            self.evaluate(test, r)
        return True

    def evaluate(self, file: str, r: int) -> tuple[Score, Scores]:
        """Return the score over all samples, and that of each task by its entry."""
        case, knowledge = self.case, self.now.knowledge
        judged = case.work.exam.model_eval
        variables = {"model_threshold": str(judged.threshold), "operator": judged.operator}
        os.environ.update(variables, OUTPUT_URL=case.folder("eval", r), MODEL_URLS=knowledge.index)
        data = case.source(file, "eval", paths_and_label)
        name, function = case.metric()
        name = getattr(function, "__name__", name)
        knowledge.models_are_read(case)
        with case.timed("evaluate"):
            results, tasks = knowledge.predict(case, self.model, data, task_index=knowledge.index)
            with errors_in(f"model_metric '{name}'", case.work.model_metric.url):
                scores: Scores = [(task.entry, {name: function(task.samples.y, task.result)}) for task in tasks]
                overall: Score = {name: function(data.y, results)}
        for entry, score in scores:
            value = number(score[name])
            if value is not None and case.work.passes(value):
                self.now.dropped.append({"round": r, "file": Path(file).name, "task": str(entry)})
        return overall, scores

    def matrix_row(self, pairs: list[tuple[str, str]], r: int) -> Row:
        """Return a row of the matrix; a round without samples of a task has the cell ""."""
        row: Row = {}
        for j in range(1, self.n + 1):
            overall, scores = self.evaluate(pairs[j][1], r)
            for key, score in (("all", overall), *scores, ("task_avg", {"accuracy": _mean(scores)})):
                row.setdefault(str(key), [""] * self.n)[j - 1] = score
        return row

    def infer(self, file: str, r: int | str) -> tuple[list[object], BaseDataSource]:
        """Return the result of each sample alone, and a source of those of unknown tasks."""
        case, knowledge = self.case, self.now.knowledge
        folder = case.folder("inference", "results", r)
        copies = case.folder("inference", "unseen_task_samples", r)
        os.environ["INFERENCE_RESULT_DIR"] = os.environ["OUTPUT_URL"] = folder
        os.environ["MODEL_URLS"] = knowledge.index
        data = case.source(file, "eval", paths_and_label)
        knowledge.models_are_read(case)
        results: list[object] = []
        x, y = [], []
        for i in range(len(data.x)):
            with case.timed("predict"):
                result, unseen = self._infer_sample(source_of(data, data.x[i : i + 1], None, "test"))
            results.append(result)
            if unseen:
                x.append(data.x[i])
                y.append(data.y[i])
                for path in data.x[i]:
                    shutil.copy(path, copies)
        return results, source_of(data, as_array(x), as_array(y), "train")

    def _infer_sample(self, sample: BaseDataSource) -> tuple[object, bool]:
        case, knowledge, model = self.case, self.now.knowledge, self.model
        mode = {} if self.mode is None else {"mode": self.mode}
        keywords = {"task_index": knowledge.index, "task_type": "seen_task", **mode}
        scores, _ = knowledge.predict(case, model, sample, "predict_score", **keywords)
        recognition = case.modules.get("unseen_sample_recognition")
        if recognition is None or isinstance(recognition, dict):
            case.note("Without a module unseen_sample_recognition with a url every sample counts as seen.")
            seen, unseen = sample, source_of(sample, [], None)
        else:
            recognition = recognition() if isinstance(recognition, type) else recognition
            with case.calling("unseen_sample_recognition", "call"):
                second = (scores,) if positionals(recognition) > 1 else ()
                seen, unseen = offer(recognition, sample, *second, **mode)
        results = []
        is_unseen = unseen.x is not None and len(unseen.x) > 0
        if is_unseen:
            cloud = {**keywords, "task_type": "unseen_task"}
            results.append(knowledge.predict(case, model, sample, "predict_cloud", **cloud)[0])
        if seen.x is not None and len(seen.x) > 0:
            results.append(knowledge.predict(case, model, seen, **keywords)[0])
        if len(results) < 2:
            return (results[0] if results else None), is_unseen
        return np.concatenate(results), is_unseen


def run(case: Case) -> Outcome:
    """Run the `mode` of model_eval: no-inference, hard-example-mining, multi-inference, or the default."""
    if case.work.model_metric.mode == "multi-inference":
        return _multi_inference(case)
    pairs = case.pairs(_KINDS, case.work.exam.incremental_rounds)
    steps = _Lifelong(case)
    if steps.matrix and len(pairs) != steps.n + 1:
        raise PluginError(
            f"mode {steps.mode} needs a pair of files before the first round: "
            f"set splitting_method to fwt_splitting or hard-example_splitting.",
            code="unfit-module",
        )
    now = steps.now
    for r in range(now.next, steps.n + 1):
        with case.round(r):
            learned = steps.round(*pairs[r - steps.first], r)
            if steps.matrix:
                now.rows.append(steps.matrix_row(pairs, r) if learned else None)
        now.next = r + 1
        case.store_snapshot(now)
    with case.round("test"):
        return _finished(steps)


def _finished(steps: _Lifelong) -> Outcome:
    case, now, matrix = steps.case, steps.now, steps.matrix
    test, n = case.data("test"), steps.n
    system: dict[str, object] = {"samples_transfer_ratio": now.record}
    numbers = None
    if matrix:
        _, scores = steps.evaluate(test, n if steps.mode == "no-inference" else n + 1)
        # A round that was skipped, or a task without samples, has empty cells.
        keys = {"all": None} | {key: None for row in now.rows for key in row or {}}
        rows = {key: [(row or {}).get(key, [""] * n) for row in now.rows] for key in keys}
        numbers = numbers_of(rows["all"])
        system |= {"MATRIX": rows, "task_avg_acc": {"accuracy": _mean(scores)}}
    if steps.mode == "no-inference":
        data = case.source(test, "eval", paths_and_label)
        keywords = {"task_index": now.knowledge.index, "task_type": "seen_task"}
        with case.timed("predict"):
            result, _ = now.knowledge.predict(case, steps.model, data, **keywords)
    else:
        result, _ = steps.infer(test, "test")
    return Outcome(
        result=result,
        system=system,
        R=None if numbers is None else numbers[1:],
        untrained=None if numbers is None else numbers[0],
        handed_test_labels=matrix and any(case.modules.get(type_) is not None for type_ in MULTI_INFERENCE_MODULES),
        measures={"dropped_tasks": now.dropped},
    )


def _mean(scores: Scores) -> float | None:
    """Return the unweighted mean over tasks."""
    values = [number(next(iter(score.values()))) for _, score in scores]
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers and len(numbers) == len(values) else None


def _multi_inference(case: Case) -> Outcome:
    """Run several models on each test sample, without training, and return the integrated results."""
    if missing := [type_ for type_ in MULTI_INFERENCE_MODULES if case.modules.get(type_) is None]:
        raise PluginError(
            f"mode multi-inference needs modules {', '.join(MULTI_INFERENCE_MODULES)}; {', '.join(missing)} is "
            "missing.",
            code="missing-module",
        )
    model = Estimator(case.required_modules("basemodel"))
    modules = [case.instantiate(type_) for type_ in MULTI_INFERENCE_MODULES]
    data = case.source(case.data("test"), "inference", paths_and_label)
    results = []
    for i in range(len(data.x)):
        sample = source_of(data, data.x[i : i + 1], None, "test")
        with case.timed("predict"):
            results.append(_together(case, model, sample, *modules))
    return Outcome(result=results)


def _together(case: Case, model: Estimator, sample: BaseDataSource, *modules: Callable[..., Any]) -> object:
    allocation, remodeling, integrate = modules
    with case.calling("task_allocation", "call"):
        sample, numbers = allocation(task_extractor=None, samples=sample)
    with case.calling("task_remodeling", "call"):
        paths, chosen = remodeling(samples=sample, mappings=numbers)
        records = [Model(index, entry, path, {}) for index, entry, path in chosen]
    tasks: list[Task] = []
    result = None
    for path in paths:
        tasks += [answered(case, model, record, path, path, **_OF_PREDICT) for record in records]
        with case.calling("inference_integrate", "call"):
            result = integrate(tasks=tasks)
    return result
