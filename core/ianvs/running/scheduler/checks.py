"""Checks of a job beyond the form of its files that run no plugin code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from ianvs.base.errors import ConfigError, PluginError, ValidationError, closest
from ianvs.base.secrets import hide_secrets
from ianvs.config.models.algorithm import MODULE_TYPES
from ianvs.config.spec import (
    DatasetSpec,
    DataTypeSpec,
    EvaluationTaskSpec,
    JobSpec,
    MetricSpec,
    TestEnvSpec,
    secrets_in,
)
from ianvs.exam import data
from ianvs.exam.data_types import data_type
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.registry import find, metric_header
from ianvs.exam.questions import EvaluationTask, evaluation_tasks_of, find_evaluation_task
from ianvs.running.inspector import Inspector
from ianvs.running.planning.cases import grid_size
from ianvs.running.planning.plan import Plan, job_columns, make_plan
from ianvs.running.scheduler.case_loop import Listener

_ADD_PREQUENTIAL = "Add `prequential: true` to the testenv."


@dataclass
class Preflight:
    """The checks of one job and their results.

    Attributes:
        job: The job.
        inspector: Inspects plugins in other processes.
        listener: Receives progress.
        problems: Errors so far.
        warnings: Warnings so far.
        samples: Fingerprints of the samples of each testenv; None if unknown.
        with_check_exam: Url and name of plugins with a method `check_exam`.
    """

    job: JobSpec
    inspector: Inspector
    listener: Listener
    problems: list[ValidationError] = field(default_factory=list)
    warnings: list[ValidationError] = field(default_factory=list)
    samples: tuple[str | None, ...] = ()
    with_check_exam: set[tuple[str | None, str]] = field(default_factory=set)

    def add(self, problems: Iterable[ValidationError], *, needs_error_free: bool = False) -> None:
        """Add what a check finds. needs_error_free: the check is skipped if earlier ones have found errors."""
        if not (self.problems and needs_error_free):
            for problem in list(problems):  # collected first: the check must not see its own errors
                problem = replace(problem, message=hide_secrets(problem.message, others=secrets_in(self.job)))
                (self.warnings if problem.warning else self.problems).append(problem)

    def error(self) -> ConfigError:
        """Return the exception with all errors."""
        return ConfigError(dict.fromkeys(self.problems), dict.fromkeys(self.warnings))

    def checked_plan(self) -> Plan:
        """Return the plan, whose job has all warnings. Raises ConfigError with all errors."""
        if self.problems:
            raise self.error()
        return replace(self.plan, job=replace(self.plan.job, warnings=tuple(dict.fromkeys(self.warnings))))

    @cached_property
    def plan(self) -> Plan:
        return make_plan(self.job, self.inspector, self.samples, self.reading_progress)

    def reading_progress(self, dataset: DatasetSpec, message: str) -> None:
        """Report the progress of reading files."""
        self.listener.reading_progress(dataset.name or "data", message)

    @cached_property
    def columns(self) -> list[list[str]]:
        """The column names of each exam."""
        return [
            [column.name for column in metrics if column.spec in exam.metrics and not column.metric.mapping]
            for exam, metrics in zip(self.job.testenvs, job_columns(self.job, self.inspector).values(), strict=True)
        ]

    @cached_property
    def levels(self) -> dict[str, str]:
        """Levels by name of metric, also of those that others are computed from; "mapping": it has several numbers."""
        every = (column for metrics in job_columns(self.job, self.inspector).values() for column in metrics)
        return {column.spec.name: "mapping" if column.metric.mapping else column.metric.level for column in every}


def paradigm_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check the paradigms of the algorithms, their options, and their types of modules."""
    job = preflight.job
    for algorithm in job.algorithms:
        spec, facts = algorithm.paradigm, preflight.inspector.paradigm(algorithm)
        for option, message in facts.problems:
            yield ValidationError(message, algorithm.places.get(option, spec.place), code="invalid-option")
        for exam in job.testenvs if facts.receives_feedback else ():
            if exam.prequential is None:
                reason = f"{spec.name} gives feedback to predictions, and {exam.name} is not a prequential exam"
                yield ValidationError(f"{reason}. {_ADD_PREQUENTIAL}", spec.place, code="unfit-paradigm")
        if not facts.methods:
            continue  # the paradigm could not be loaded
        types = dict.fromkeys([*facts.methods, *MODULE_TYPES])
        listed = {module.type: module for module in algorithm.modules}
        misspelt = [module for kind, module in listed.items() if kind not in types]
        for module in misspelt:
            message = f"type should be one of {', '.join(types)}, found the text '{module.type}'."
            yield ValidationError(
                message + closest(module.type, types), module.places.get("type", module.place), code="invalid-choice"
            )
        for kind in facts.needed:
            if kind not in listed and not closest(kind, [module.type for module in misspelt]):
                yield ValidationError(
                    f"{spec.name} needs a module of type {kind}. Add one.",
                    algorithm.places.get("modules"),
                    code="missing-module",
                )


def data_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check names, options, index files and labels of each testenv, without decoding samples.

    An author's function is called by another process, once, for the samples that it returns. To look at a long list of
    files takes seconds, which the plan does not do again.
    """
    job = preflight.job
    cache, seconds = job.workspace / "cache", job.limits.check_seconds
    results = [
        data.check_dataset(exam.dataset, cache, seconds, partial(preflight.reading_progress, exam.dataset))
        for exam in job.testenvs
    ]
    preflight.samples = tuple(result.samples for result in results)
    for result in results:
        yield from result.problems


def metric_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check the metrics. Files of authors are imported in another process."""
    for exam in preflight.job.testenvs:
        for spec in exam.metrics:
            metric = preflight.inspector.metric(spec)
            if isinstance(metric, list):
                yield from metric
            elif metric.missing is not None and (why := metric.missing()) is not None:
                yield ValidationError(why, spec.place, code="missing-package")


def gate_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check the metrics of `model_eval`."""
    for spec in (exam.gate.metric for exam in preflight.job.testenvs if exam.gate is not None):
        metric = preflight.inspector.metric(spec)
        if isinstance(metric, list):
            yield from metric
            continue
        if metric.accumulate is not None:
            message = f"model_eval scores one model, and '{spec.name}' has state over rounds. Name another score."
            yield ValidationError(message, spec.place, code="unfit-metric")
        if metric.missing is not None and (why := metric.missing()) is not None:
            yield ValidationError(why, spec.place, code="missing-package")
        if metric.asks:
            message = f"model_eval scores predictions for a part of the round, and {spec.name} needs more than"
            yield ValidationError(f"{message} predictions. Name another score.", spec.place, code="unfit-metric")
        if metric.mapping or metric.level != "score":
            message = f"model_eval needs a score of predictions, and '{spec.name}' is not one."
            yield ValidationError(message, spec.place, code="unfit-metric")


def quantity_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Find two names of one quantity, which would give two equal columns."""
    first: dict[tuple[str, str], MetricSpec] = {}
    columns = job_columns(preflight.job, preflight.inspector).values()
    for exam, metrics in zip(preflight.job.testenvs, columns, strict=True):
        for column in metrics:
            spec, name = column.spec, column.name
            if spec.url is not None or spec.options or spec not in exam.metrics:
                continue
            same = first.setdefault((metric_header(spec).name, column.score), spec)
            if same != spec and same.name == spec.name and same in exam.metrics:
                yield ValidationError(
                    f"'{name}' is listed twice, with `of` and without. Keep one.",
                    spec.place,
                    code="duplicate-column",
                )
            elif same.name != spec.name:
                message = f"'{spec.name}' and '{same.name}' are two names of one metric. Keep one of them."
                yield ValidationError(message, spec.place, code="duplicate-column")


def link_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check references between names within an exam."""
    for exam in preflight.job.testenvs:
        names = {task.name for task in exam.all_evaluation_tasks}
        for spec in exam.metrics:
            answer = preflight.inspector.metric(spec)
            if spec.score is not None and preflight.levels.get(spec.score, "score") != "score":
                yield ValidationError(
                    f"'{spec.score}' is not a score that {spec.name} can be computed from.",
                    spec.place,
                    code="unfit-metric",
                )
            if isinstance(answer, Metric) and answer.level == "stream" and exam.prequential is None:
                reason = f"{answer.name} needs predictions that are made before the labels are revealed"
                yield ValidationError(f"{reason}. {_ADD_PREQUENTIAL}", spec.place, code="unrequested-scores")
            for metric in (answer, find(spec.score) if spec.score else None):
                for key in metric.asks if isinstance(metric, Metric) else ():
                    if isinstance(metric, Metric) and key not in names:
                        how = f"{key}: true" if hasattr(exam, key) else f"evaluation_tasks: [{key}]"
                        message = f"{metric.name} needs `{how}` in the testenv: its input is recorded in a run."
                        yield ValidationError(message, spec.place, code="unrequested-scores")


def combined_model_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Find paradigms that combine models although a testenv evaluates more than predictions of the base model."""
    job = preflight.job
    shown = [task.name for exam in job.testenvs for task in known_tasks(exam) if task.shows_labels]
    if not shown:
        return
    for algorithm in job.algorithms:
        if preflight.inspector.paradigm(algorithm).by_itself:
            yield ValidationError(
                f"{algorithm.paradigm.name} does not answer by its base model alone, so there is no single model for "
                f"`{shown[0]}: true` to ask. Take the algorithm out of the job, or that line out of the testenv.",
                algorithm.paradigm.place,
                code="unfit-paradigm",
            )


def task_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Find unknown evaluation tasks and data types."""
    for exam in preflight.job.testenvs:
        wanted: list[tuple[DataTypeSpec | EvaluationTaskSpec, Callable[..., object]]]
        wanted = [(spec, partial(find_evaluation_task, spec)) for spec in exam.evaluation_tasks]
        if (type_spec := exam.dataset.data_type) is not None:
            wanted.append((type_spec, partial(data_type, type_spec.name, type_spec)))
        for spec, find_it in wanted:
            try:
                find_it()
            except PluginError as error:
                yield ValidationError.from_exception(error, spec.places.get("name", spec.place), "unknown-task-or-type")


def known_tasks(exam: TestEnvSpec) -> Sequence[EvaluationTask]:
    """Return the known evaluation tasks of an exam; `task_problems` reports others."""
    try:
        return evaluation_tasks_of(exam)
    except PluginError:
        return ()


def protocol_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check that protocols whose test samples are trained on later are used only in prequential exams."""
    for exam in preflight.job.testenvs:
        streams = exam.dataset.options.get("protocol") == "streaming"
        if streams and (exam.scenario is None or exam.scenario.options.get("streaming") is not True):
            message = (
                "`protocol: streaming` tests on the very samples that later rounds teach. "
                "Ask ahead only: scenario: {name: domain-incremental, streaming: true}."
            )
            yield ValidationError(
                message, exam.dataset.places.get("protocol", exam.dataset.place), code="leaking-protocol"
            )


def reference_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check the algorithms in `references`."""
    job = preflight.job
    by_name = {algorithm.name: algorithm for algorithm in job.algorithms}
    for role, name in job.references.items():
        algorithm = by_name.get(name)
        if algorithm is None:
            reason = f"is not an algorithm of this job.{closest(name, by_name)} There are: {', '.join(by_name)}."
        elif grid_size(algorithm.modules) > 1:
            reason = "has several choices of hyperparameters; a reference needs one value of each."
        elif preflight.inspector.paradigm(algorithm).as_one:
            reason = "learns everything in one round; a reference is asked after each round, like the others."
        else:
            continue
        yield ValidationError(f"'{name}' {reason}", job.places.get(f"references.{role}"), code="invalid-reference-run")
