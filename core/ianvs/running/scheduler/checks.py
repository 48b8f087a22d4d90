"""What is wrong with a job beyond the form of its files, as far as it shows without running anybody's code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

from ianvs.base.errors import ConfigError, IanvsError, Problem, closest
from ianvs.base.secrets import hide_secrets
from ianvs.config.contracts import contract_of
from ianvs.config.models.algorithm import MODULE_TYPES
from ianvs.config.spec import JobSpec, MetricSpec, secrets_in
from ianvs.exam import data
from ianvs.exam.metrics.metric_columns import column_names
from ianvs.exam.metrics.registry import metric_header
from ianvs.exam.scenarios import check_scenario
from ianvs.processes.engines.engine import Engine
from ianvs.running.inspector import Inspector
from ianvs.running.planning import Plan, cells, make_plan, scored_metrics
from ianvs.running.scheduler.case_loop import Listener

PROBED = "linear_probe_accuracy"
TASK_SCORED = "task_incremental_accuracy"
FORCED = ("reply_token_accuracy", "perplexity")
_KEPT_BY_US = {name: name for name in ("budget", "linear_probe", "task_scores", "teacher_forced")} | {
    "model_eval": "gate"
}
"""Keys of a testenv that act on rounds which core itself keeps, and the fields that hold them."""


class Check(NamedTuple):
    """One of the checks. A warning among what it finds stops nothing.

    stands_on_others: it takes for granted that those before it have found nothing wrong.
    """

    find: Callable[[Preflight], Iterable[Problem]]
    stands_on_others: bool = False


class Preflight:
    """The checks of one job while they are made, and what they have found.

    engine: whose processes build exams; it is asked with None where there is no plan yet.
    """

    def __init__(
        self,
        job: JobSpec,
        inspector: Inspector,
        engine: Callable[[Plan | None], Engine] | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.job, self.inspector, self.listener = job, inspector, listener or Listener()
        self._engine = engine
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = list(job.warnings)
        self.samples: tuple[str | None, ...] = ()  # fingerprints of each testenv's, where they are known by then
        self.levels: dict[str, str] = {}  # of metrics, by name; "mapping" of one that yields several numbers
        self.asking: set[tuple[Any, ...]] = set()  # modules whose plugins want to see the facts of an exam

    def make(self, checks: Sequence[Check]) -> None:
        """Make these checks, those apart that stand on others which have found something."""
        for check in checks:
            if not (self.problems and check.stands_on_others):
                for problem in list(check.find(self)):  # what it stands on does not change meanwhile
                    problem = replace(problem, message=hide_secrets(problem.message, known=secrets_in(self.job)))
                    (self.warnings if problem.warning else self.problems).append(problem)

    def insist(self) -> None:
        """Raise ConfigError with everything that is wrong, if anything is."""
        if self.problems:
            raise ConfigError(dict.fromkeys(self.problems), dict.fromkeys(self.warnings))

    def checked_plan(self) -> Plan:
        """The plan, whose job has all warnings. Raises ConfigError if anything is wrong."""
        self.insist()
        return replace(self.plan, job=replace(self.job, warnings=tuple(dict.fromkeys(self.warnings))))

    @cached_property
    def plan(self) -> Plan:
        return make_plan(self.job, self.inspector, self.samples)

    @property
    def engine(self) -> Engine:
        assert self._engine is not None, "no check of files runs a task"
        return self._engine(None if self.problems else self.plan)

    @cached_property
    def columns(self) -> list[list[str]]:
        """Of each exam the names of the columns that it lists."""
        exams = self.job.testenvs
        asked = [[(spec, self.level(spec.name)) for spec in scored_metrics(exam)] for exam in exams]
        return [
            [name for (spec, level), (name, _) in both if level != "mapping" and spec in exam.metrics]
            for exam, both in zip(exams, map(zip, asked, column_names(asked)), strict=True)
        ]

    def level(self, name: str) -> str:
        """Of a metric that a testenv lists, or of a built-in one that is computed for another's sake."""
        if name in self.levels:
            return self.levels[name]
        try:
            metric = metric_header(MetricSpec(name))
        except IanvsError:
            return "score"  # an unknown name is told of where it is resolved
        return "mapping" if metric.mapping else metric.level


def paradigm_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with the paradigms of the algorithms, their options, and the types of modules that they list."""
    job = flight.job
    for algorithm, facts in zip(job.algorithms, flight.inspector.paradigms(job.algorithms), strict=True):
        spec = algorithm.paradigm
        for option, message in facts.problems:
            yield Problem(message, spec.places.get(option, spec.place))
        if not facts.methods:
            continue  # nothing is known of it
        known = dict.fromkeys([*facts.methods, *MODULE_TYPES])
        listed = {module.type: module for module in algorithm.modules}
        misspelt = [module for kind, module in listed.items() if kind not in known]
        for module in misspelt:
            message = f"type should be one of {', '.join(known)}, found the text '{module.type}'."
            yield Problem(message + closest(module.type, known), module.places.get("type", module.place))
        for kind in facts.needed:
            if kind not in listed and not closest(kind, [module.type for module in misspelt]):
                yield Problem(f"{spec.name} needs a module of type {kind}. Add one.", algorithm.places.get("modules"))


def setting_problems(flight: Preflight) -> Iterator[Problem]:
    """What the contract finds wrong with the settings; with keys of ours that it has no part in."""
    contract = contract_of(flight.job)
    yield from contract.setting_problems(flight.job)
    for exam in flight.job.testenvs if contract.runs_cases else ():
        for key, said in _KEPT_BY_US.items():
            if getattr(exam, said):
                place = exam.places.get(key, exam.place)
                yield Problem(f"'{key}' has no effect under `contract: {contract.name}`.", place, warning=True)


def data_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with names, options, index files and labels of each testenv; nothing is decoded.

    An author's function is called by another process, once, for the samples that it returns. To look at a long list of
    files takes seconds, which the plan does not do again.
    """
    job = flight.job
    if (theirs := contract_of(job).data_problems(job)) is not None:
        found = [data.Checked(list(theirs))]
    else:
        cache, seconds = job.workspace / "cache", job.limits.check_seconds
        found = [data.checked(exam.dataset, cache, seconds) for exam in job.testenvs]
    flight.samples = tuple(one.samples for one in found)
    for one in found:
        yield from one.problems


def scenario_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with the scenarios' names and options."""
    for exam in flight.job.testenvs:
        if exam.dataset.handed_as == "arrays":  # files that are handed out as they are come in no scenario
            yield from check_scenario(exam.scenario, exam.incremental_rounds, exam.dataset.using)


def metric_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with the metrics, and their levels; an author's file is imported by another process."""
    for exam in flight.job.testenvs:
        gate = exam.gate.metric if exam.gate else None
        specs = [*exam.metrics, *([gate] if gate else [])]
        for spec, metric in zip(specs, flight.inspector.metrics(specs), strict=True):
            if isinstance(metric, list):
                yield from metric
                continue
            flight.levels[spec.name] = "mapping" if metric.mapping else metric.level
            if spec is gate and metric.accumulate is not None:
                message = f"model_eval scores one model, and '{spec.name}' has state over rounds. Name another score."
                yield Problem(message, spec.place)
            if metric.missing is not None and (why := metric.missing()) is not None:
                yield Problem(why, spec.place)


def quantity_problems(flight: Preflight) -> Iterator[Problem]:
    """Two names for one quantity would be two columns with the same numbers."""
    first: dict[tuple[str, str], MetricSpec] = {}
    for exam in flight.job.testenvs:
        metrics = [(spec, metric_header(spec)) for spec in scored_metrics(exam)]
        levels = [(spec, "mapping" if metric.mapping else metric.level) for spec, metric in metrics]
        for (spec, metric), (name, of) in zip(metrics, column_names([levels])[0], strict=True):
            if spec.url is not None or spec.options or spec not in exam.metrics:
                continue
            same = first.setdefault((metric.name, of), spec)
            if same != spec and same.name == spec.name and same in exam.metrics:
                yield Problem(f"'{name}' is asked for twice, with `of` and without. Keep one.", spec.place)
            elif same.name != spec.name:
                message = f"'{spec.name}' and '{same.name}' are two names of one metric. Keep one of them."
                yield Problem(message, spec.place)


def link_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with names that point at each other, within one exam."""
    for exam in flight.job.testenvs:
        for spec in exam.metrics:
            named = (spec.name, spec.of)
            if spec.of is not None and flight.level(spec.of) != "score":
                yield Problem(f"'{spec.of}' is not a score that {spec.name} can be computed from.", spec.place)
            if PROBED in named and not exam.linear_probe:
                needs = f"{PROBED} needs `linear_probe: true` in the testenv: features are examined"
                yield Problem(f"{needs} while a case runs.", spec.place)
            if TASK_SCORED in named and not exam.task_scores:
                needs = f"{TASK_SCORED} needs `task_scores: true` in the testenv: scores are asked for"
                yield Problem(f"{needs} while a case runs.", spec.place)
            if (name := next((n for n in named if n in FORCED), None)) and not exam.teacher_forced:
                message = f"{name} needs `teacher_forced: true` in the testenv: it is asked for while a case runs."
                yield Problem(message, spec.place)
        if exam.gate is None:
            continue
        gate = exam.gate.metric
        if gate.name in FORCED:
            message = f"model_eval scores replies to a part of the round, and {gate.name} is none of replies."
            yield Problem(f"{message} lexical_similarity is one.", gate.place)
        if flight.levels[gate.name] != "score":
            yield Problem(f"model_eval needs a score of predictions; '{gate.name}' is none.", gate.place)


def forced_problems(flight: Preflight) -> Iterator[Problem]:
    """Paradigms whose answers are not those of their base model, where a testenv asks this for more than answers."""
    job = flight.job
    if not any(exam.teacher_forced for exam in job.testenvs):
        return
    for algorithm, facts in zip(job.algorithms, flight.inspector.paradigms(job.algorithms), strict=True):
        if facts.by_itself:
            yield Problem(
                f"{algorithm.paradigm.name} does not answer by its base model alone, so there is none that "
                "`teacher_forced: true` in the testenv could ask. Take the algorithm out of the job, or that line out "
                "of the testenv.",
                algorithm.paradigm.place,
            )


def protocol_problems(flight: Preflight) -> Iterator[Problem]:
    """A streaming protocol tests on what will be taught; asked afterwards, it would test on training samples."""
    for exam in flight.job.testenvs:
        streams = exam.dataset.options.get("protocol") == "streaming"
        if streams and (exam.scenario is None or exam.scenario.options.get("streaming") is not True):
            message = (
                "`protocol: streaming` tests on the very samples that later rounds teach. "
                "Ask ahead only: scenario: {name: domain-incremental, streaming: true}."
            )
            yield Problem(message, exam.dataset.places.get("protocol", exam.dataset.place))


def reference_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with the algorithms that `references` names."""
    job = flight.job
    if not job.references:
        return
    facts = flight.inspector.paradigms(job.algorithms)
    known = {algorithm.name: (algorithm, of) for algorithm, of in zip(job.algorithms, facts, strict=True)}
    for role, name in job.references.items():
        place = job.places.get(f"references.{role}")
        algorithm, paradigm = known.get(name, (None, None))
        if algorithm is None or paradigm is None:
            said = f"'{name}' is not an algorithm of this job.{closest(name, known)} There are: {', '.join(known)}."
            yield Problem(said, place)
        elif cells(algorithm.modules) > 1:
            said = f"'{name}' has several choices of hyperparameters; a reference needs one value of each."
            yield Problem(said, place)
        elif paradigm.as_one:
            said = f"'{name}' learns everything in one round; a reference is asked after each round, like the others."
            yield Problem(said, place)
