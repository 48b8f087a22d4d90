"""What is wrong with a job beyond the form of its files, as far as it shows without running anybody's code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ianvs.base.errors import IanvsError, Place, Problem, closest
from ianvs.config.contracts import contract_of
from ianvs.config.spec import JobSpec, MetricSpec, TestEnvSpec
from ianvs.exam import data
from ianvs.exam.data.doubts import SHARED
from ianvs.exam.metrics.metric_columns import column_names, columns_named
from ianvs.exam.metrics.registry import metric_header
from ianvs.exam.scenarios import check_scenario
from ianvs.running.inspector import Inspector
from ianvs.running.planning import cells, scored_metrics
from ianvs.running.planning.paradigm_fit import paradigm_problems
from ianvs.store import ExamRecord

__all__ = [
    "checked_data",
    "column_problems",
    "columns_of",
    "forced_problems",
    "link_problems",
    "metric_levels",
    "paradigm_problems",
    "protocol_problems",
    "published_problems",
    "quantity_problems",
    "reference_problems",
    "sample_problems",
    "scenario_problems",
    "setting_problems",
    "wrong_column",
]

PROBED = "linear_probe_accuracy"
TASK_SCORED = "task_incremental_accuracy"
FORCED = ("reply_token_accuracy", "perplexity")
_KEPT_BY_US = {name: name for name in ("budget", "linear_probe", "task_scores", "teacher_forced")} | {
    "model_eval": "gate"
}
"""Keys of a testenv that act on rounds which core itself keeps, and the fields that hold them."""


def checked_data(job: JobSpec) -> tuple[data.Checked, ...]:
    """What is wrong with names, options, index files and labels of each testenv; nothing is decoded.

    An author's function is called by another process, once, for the samples that it returns.
    """
    if (found := contract_of(job).data_problems(job)) is not None:
        return (data.Checked(list(found)),)
    cache, seconds = job.workspace / "cache", job.limits.check_seconds
    return tuple(data.checked(exam.dataset, cache, seconds) for exam in job.testenvs)


def setting_problems(job: JobSpec) -> Iterator[Problem]:
    """What the contract finds wrong with the settings; with keys of ours that it has no part in."""
    contract = contract_of(job)
    yield from contract.setting_problems(job)
    for exam in job.testenvs if contract.runs_cases else ():
        for key, said in _KEPT_BY_US.items():
            if getattr(exam, said):
                place = exam.places.get(key, exam.place)
                yield Problem(f"'{key}' has no effect under `contract: {contract.name}`.", place, warning=True)


def sample_problems(exam: ExamRecord, spec: TestEnvSpec, doubts: Mapping[str, str] | None) -> list[Problem]:
    """Warnings of `doubts` about the samples; where only rounds to come are asked, both parts are the same samples."""
    place = spec.dataset.place or spec.place
    meant = {SHARED} if exam.rules.get("asked") == "future" else {}
    return [Problem(said, place, warning=True) for name, said in (doubts or {}).items() if name not in meant]


def scenario_problems(job: JobSpec) -> list[Problem]:
    """What is wrong with the scenarios' names and options."""
    return [
        problem
        for exam in job.testenvs
        if exam.dataset.handed_as == "arrays"  # files that are handed out as they are come in no scenario
        for problem in check_scenario(exam.scenario, exam.incremental_rounds, exam.dataset.using)
    ]


def metric_levels(job: JobSpec, inspector: Inspector) -> tuple[list[Problem], dict[str, str]]:
    """(what is wrong with the metrics, their levels by name); an author's file is imported by another process."""
    problems: list[Problem] = []
    levels: dict[str, str] = {}
    for exam in job.testenvs:
        specs = [*exam.metrics, *([exam.gate.metric] if exam.gate else [])]
        found = inspector.metrics(specs)
        for spec, metric in zip(specs, found, strict=True):
            if isinstance(metric, list):
                problems += metric
                continue
            levels[spec.name] = "mapping" if metric.mapping else metric.level
            if exam.gate is not None and spec is exam.gate.metric and metric.accumulate is not None:
                message = f"model_eval scores one model, and '{spec.name}' has state over rounds. Name another score."
                problems.append(Problem(message, spec.place))
            if metric.missing is not None and (why := metric.missing()) is not None:
                problems.append(Problem(why, spec.place))
    return problems, levels


def column_problems(job: JobSpec, levels: dict[str, str]) -> list[Problem]:
    """What is wrong with `sort_by`, which names columns."""
    problems = []
    columns = columns_of(job, levels)
    for name, _ in job.rank.sort_by:
        if wrong := wrong_column("sort_by names", name, columns):
            problems.append(Problem(wrong, job.rank.places.get(name) or Place(job.file)))
    keys = {name for name, _ in job.rank.sort_by}
    for exam, of_exam in zip(job.testenvs, columns, strict=True):
        if not problems and not any(columns_named(name, of_exam) for name in keys):
            message = f"nothing ranks this exam: sort_by names {', '.join(sorted(keys))}. Add one to its metrics."
            problems.append(Problem(message, exam.places.get("metrics", exam.place)))
    return problems


def published_problems(job: JobSpec, levels: dict[str, str]) -> list[Problem]:
    """What is wrong with `published`, which names columns and is of one row."""
    problems = []
    columns = columns_of(job, levels)
    algorithms = {algorithm.name: algorithm for algorithm in job.algorithms}
    for algorithm, specs in job.published.items():
        first = next(iter(specs.values())).place
        if len(job.testenvs) > 1:
            message = f"`published` of {algorithm} is of one exam, and the job has {len(job.testenvs)} testenvs."
            problems.append(Problem(f"{message} Give each testenv a job of its own.", first))
        if (count := cells(algorithms[algorithm].modules)) > 1:
            message = f"`published` of {algorithm} is of one setting, and its hyperparameters give {count}."
            problems.append(Problem(f"{message} Keep one value of each, or take `published` out.", first))
        for name, spec in specs.items():
            if wrong := wrong_column("published names", name, columns):
                problems.append(Problem(wrong, spec.place))
            elif levels.get(name) == "score" and spec.unit == "fraction" and 1 < abs(spec.mean) <= 100:
                message = f"is {spec.mean:g} a percentage? Scores are fractions here: write `unit: percent` if it is."
                problems.append(Problem(message, spec.places.get("mean", spec.place), warning=True))
    return problems


def wrong_column(said: str, name: str, columns: Sequence[Sequence[str]], what: str = "is not a column") -> str:
    """Why `name` means no column, or more than one, of an exam; "" where it doesn't. columns: those of each exam.

    said: who names it, as in "sort_by names". what: what it is if nobody has such a column.
    """
    shown = list(dict.fromkeys(column for of_exam in columns for column in of_exam))
    if not columns_named(name, shown):
        listed = f"The testenv's metrics are: {', '.join(shown)}." if shown else "The testenv has no metrics."
        return f"{said} '{name}', which {what}.{closest(name, shown)} {listed}"
    for of_exam in columns:
        if len(found := columns_named(name, of_exam)) > 1:
            listed = " or ".join(f"'{column}'" for column in found)
            return f"{said} '{name}', which is there of several scores: write {listed}."
    return ""


def columns_of(job: JobSpec, levels: dict[str, str]) -> list[list[str]]:
    """For each exam the names of the columns that it lists."""
    asked = [[(spec, _level(spec.name, levels)) for spec in scored_metrics(exam)] for exam in job.testenvs]
    return [
        [name for (spec, level), (name, _) in zip(metrics, names, strict=True) if level != "mapping" and spec in listed]
        for metrics, names, listed in zip(
            asked, column_names(asked), (exam.metrics for exam in job.testenvs), strict=True
        )
    ]


def quantity_problems(job: JobSpec) -> list[Problem]:
    """Two names for one quantity would be two columns with the same numbers."""
    problems = []
    first: dict[tuple[str, str], MetricSpec] = {}
    for exam in job.testenvs:
        metrics = [(spec, metric_header(spec)) for spec in scored_metrics(exam)]
        levels = [(spec, "mapping" if metric.mapping else metric.level) for spec, metric in metrics]
        for (spec, metric), (name, of) in zip(metrics, column_names([levels])[0], strict=True):
            if spec.url is not None or spec.options or spec not in exam.metrics:
                continue
            same = first.setdefault((metric.name, of), spec)
            if same != spec and same.name == spec.name and same in exam.metrics:
                problems.append(Problem(f"'{name}' is asked for twice, with `of` and without. Keep one.", spec.place))
            elif same.name != spec.name:
                message = f"'{spec.name}' and '{same.name}' are two names of one metric. Keep one of them."
                problems.append(Problem(message, spec.place))
    return problems


def link_problems(job: JobSpec, levels: dict[str, str]) -> list[Problem]:
    """What is wrong with names that point at each other, within one exam."""
    return [problem for exam in job.testenvs for problem in _problems_between(exam, levels)]


def _problems_between(exam: TestEnvSpec, levels: dict[str, str]) -> list[Problem]:
    problems = []
    for spec in exam.metrics:
        if spec.of is not None and _level(spec.of, levels) != "score":
            problems.append(Problem(f"'{spec.of}' is not a score that {spec.name} can be computed from.", spec.place))
        if PROBED in (spec.name, spec.of) and not exam.linear_probe:
            message = f"{PROBED} needs `linear_probe: true` in the testenv: features are examined while a case runs."
            problems.append(Problem(message, spec.place))
        if TASK_SCORED in (spec.name, spec.of) and not exam.task_scores:
            message = f"{TASK_SCORED} needs `task_scores: true` in the testenv: scores are asked for while a case runs."
            problems.append(Problem(message, spec.place))
        if (name := next((n for n in (spec.name, spec.of) if n in FORCED), None)) and not exam.teacher_forced:
            message = f"{name} needs `teacher_forced: true` in the testenv: it is asked for while a case runs."
            problems.append(Problem(message, spec.place))
    if exam.gate is not None and exam.gate.metric.name in FORCED:
        gate = exam.gate.metric
        message = f"model_eval scores replies to a part of the round, and {gate.name} is none of replies."
        problems.append(Problem(f"{message} lexical_similarity is one.", gate.place))
    if exam.gate is not None and levels[exam.gate.metric.name] != "score":
        gate = exam.gate.metric
        problems.append(Problem(f"model_eval needs a score of predictions; '{gate.name}' is none.", gate.place))
    return problems


def _level(name: str, levels: dict[str, str]) -> str:
    """Of a metric that a testenv lists, or of a built-in one that is computed for another's sake."""
    if name in levels:
        return levels[name]
    try:
        metric = metric_header(MetricSpec(name))
    except IanvsError:
        return "score"  # an unknown name is told of where it is resolved
    return "mapping" if metric.mapping else metric.level


def forced_problems(job: JobSpec, inspector: Inspector) -> list[Problem]:
    """Paradigms whose answers are not those of their base model, where a testenv asks this for more than answers."""
    if not any(exam.teacher_forced for exam in job.testenvs):
        return []
    return [
        Problem(
            f"{algorithm.paradigm.name} does not answer by its base model alone, so there is none that "
            "`teacher_forced: true` in the testenv could ask. Take the algorithm out of the job, or that line out of "
            "the testenv.",
            algorithm.paradigm.place,
        )
        for algorithm, facts in zip(job.algorithms, inspector.paradigms(job.algorithms), strict=True)
        if facts.by_itself
    ]


def protocol_problems(job: JobSpec) -> list[Problem]:
    """A streaming protocol tests on what will be taught; asked afterwards, it would test on training samples."""
    return [problem for exam in job.testenvs for problem in _problems_of_protocol(exam)]


def _problems_of_protocol(exam: TestEnvSpec) -> list[Problem]:
    streams = exam.dataset.options.get("protocol") == "streaming"
    asks_ahead = exam.scenario is not None and exam.scenario.options.get("streaming") is True
    if not streams or asks_ahead:
        return []
    message = (
        "`protocol: streaming` tests on the very samples that later rounds teach. "
        "Ask ahead only: scenario: {name: domain-incremental, streaming: true}."
    )
    return [Problem(message, exam.dataset.places.get("protocol", exam.dataset.place))]


def reference_problems(job: JobSpec, inspector: Inspector) -> list[Problem]:
    """What is wrong with the algorithms that `references` names."""
    problems = []
    algorithms = {algorithm.name: algorithm for algorithm in job.algorithms}
    if not job.references:
        return []
    paradigms = inspector.paradigms(job.algorithms)
    as_one = {name: facts.as_one for name, facts in zip(algorithms, paradigms, strict=True)}
    for role, name in job.references.items():
        place = job.places.get(f"references.{role}")
        if name not in algorithms:
            listed = ", ".join(algorithms)
            hint = closest(name, algorithms)
            problems.append(Problem(f"'{name}' is not an algorithm of this job.{hint} There are: {listed}.", place))
        elif cells(algorithms[name].modules) > 1:
            said = f"'{name}' has several choices of hyperparameters; a reference needs one value of each."
            problems.append(Problem(said, place))
        elif as_one[name]:
            said = f"'{name}' learns everything in one round; a reference is asked after each round, like the others."
            problems.append(Problem(said, place))
    return problems
