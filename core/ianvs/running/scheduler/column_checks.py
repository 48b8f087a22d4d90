"""Checks of `sort_by`, `published`, `select` and `search`, which name columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from ianvs.base.errors import Location, ValidationError, closest
from ianvs.config.spec import JobSpec, Range, SearchSpec, SelectSpec, TestEnvSpec
from ianvs.exam.metrics.metric_columns import columns_named, whole_of
from ianvs.exam.metrics.registry import find, metric_header
from ianvs.results.report.columns import title_of
from ianvs.running.planning.cases import grid_size
from ianvs.running.planning.references import ROLES
from ianvs.running.planning.studies import is_searched, search_metric
from ianvs.running.scheduler.checks import Preflight


def sort_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check `sort_by`."""
    job = preflight.job
    names = [name for name, _ in job.rank.sort_by]
    if all(name in columns for name in names for columns in preflight.columns):
        return
    wholes = {name: whole_of(name) for name in names}
    of_parts = [name for name in names if wholes[name] and preflight.levels.get(wholes[name]) in ("score", "mapping")]
    others = [name for name in names if name not in of_parts]
    wrong = [(problem, name) for name in others if (problem := _wrong_column(preflight, "sort_by names", name))]
    for problem, name in wrong:
        yield ValidationError(problem, job.rank.places.get(name) or Location(job.file), code="unknown-column")
    for exam in [] if wrong or of_parts else _exams_without(preflight, names)[:1]:
        message = f"nothing ranks this exam: sort_by names {', '.join(sorted(set(names)))}. Add one to its metrics."
        yield ValidationError(message, exam.places.get("metrics", exam.place), code="unknown-column")


def published_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check `published` of each algorithm, which needs a single row."""
    job = preflight.job
    algorithms = {algorithm.name: algorithm for algorithm in job.algorithms}
    for algorithm, specs in job.published.items():
        first = next(iter(specs.values())).place
        if len(job.testenvs) > 1:
            message = f"`published` of {algorithm} is of one exam, and the job has {len(job.testenvs)} testenvs."
            yield ValidationError(f"{message} Give each testenv a job of its own.", first, code="invalid-published")
        if (count := grid_size(algorithms[algorithm].modules)) > 1:
            message = f"`published` of {algorithm} is of one setting, and its hyperparameters give {count}."
            yield ValidationError(
                f"{message} Keep one value of each, or take `published` out.", first, code="invalid-published"
            )
        for name, spec in specs.items():
            if wrong := _wrong_column(preflight, "published names", name):
                yield ValidationError(wrong, spec.place, code="unknown-column")
            elif preflight.levels.get(name) == "score" and spec.unit == "fraction" and 1 < abs(spec.mean) <= 100:
                message = f"is {spec.mean:g} a percentage? Scores are fractions here: write `unit: percent` if it is."
                yield ValidationError(message, spec.places.get("mean", spec.place), warning=True, code="doubtful-unit")


def _wrong_column(preflight: Preflight, subject: str, name: str, otherwise: str = "is not a column") -> str:
    """Return why `name` matches no or several columns of an exam; "" if it matches one.

    Args:
        preflight: The checks.
        subject: Beginning of the message, as in "sort_by names".
        name: The name.
        otherwise: What it is if no exam has such a column.
    """
    matches = [columns_named(name, of_exam) for of_exam in preflight.columns]
    if not any(matches):
        shown = list(dict.fromkeys(column for of_exam in preflight.columns for column in of_exam))
        listed = f"The testenv's metrics are: {', '.join(shown)}." if shown else "The testenv has no metrics."
        same = [column for column in shown if _same_metric(name, column)]
        hint = f" It is the column '{same[0]}' here." if same else closest(name, shown)
        if preflight.levels.get(name) == "mapping":
            hint = f" It yields several numbers: write one of them, as '{name}[part]', with a class for `part`."
        return f"{subject} '{name}', which {otherwise}.{hint} {listed}"
    several = next((columns for columns in matches if len(columns) > 1), ())
    listed = " or ".join(f"'{column}'" for column in several)
    return f"{subject} '{name}', which exists for several scores: write {listed}." if several else ""


def renamed_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Check `columns` of the leaderboard for unknown hyperparameters."""
    job, rank = preflight.job, preflight.job.rank
    modules = [module for algorithm in job.algorithms for module in algorithm.modules]
    names = list(dict.fromkeys(name for module in modules for name in (*dict(module.grid), *module.constants)))
    for name in rank.columns:
        if name not in names and job.search is None:
            hint = f"{closest(name, names)} There are: {', '.join(names) or 'none'}."
            message = f"`columns` names '{name}', which is no hyperparameter in the algorithms' files.{hint}"
            yield ValidationError(message, rank.places.get(name), code="unknown-hyperparameter")
    of_exams = preflight.columns if not preflight.problems else ()  # metrics may be misspelt
    metrics = {column for columns in of_exams for column in columns}
    for name, title in rank.columns.items():
        if name not in names or title == name:
            continue
        shown = f"`columns` shows {name} as '{title}'"
        message = ""
        if title in metrics:
            message = f"{shown}, which is a metric: the column is called '{title_of(title)} (hyperparameter)'."
        elif title in names and (both := _algorithm_with(job, name, title)):
            message = f"{shown}, and {both} has both: its values stay in two columns."
        elif title not in names and (near := closest(title, names)):
            message = f"{shown}, which is no hyperparameter in the algorithms' files.{near}"
        if message:
            yield ValidationError(message, rank.places.get(name), warning=True, code="doubtful-ranking")


def _algorithm_with(job: JobSpec, *names: str) -> str:
    """Return the first algorithm with hyperparameters of all these names; "" if there is none."""
    for algorithm in job.algorithms:
        if all(any(name in (*dict(m.grid), *m.constants) for m in algorithm.modules) for name in names):
            return algorithm.name
    return ""


def _same_metric(name: str, column: str) -> bool:
    meant = find(name)
    return meant is not None and find(column.partition(" of ")[0]) is meant


def _exams_without(preflight: Preflight, names: Sequence[str]) -> list[TestEnvSpec]:
    """Return the testenvs without any of these columns."""
    both = zip(preflight.job.testenvs, preflight.columns, strict=True)
    return [exam for exam, columns in both if not any(columns_named(name, columns) for name in names)]


def rank_select_problems(preflight: Preflight, select: SelectSpec) -> Iterator[ValidationError]:
    """Check `select` of the leaderboard."""
    name = preflight.job.rank.sort_by[0][0]
    if preflight.levels.get(whole_of(name)) in ("score", "mapping"):
        message = f"`select` chooses by a score, and '{name}' is a part of one. Sort by a score first."
        yield ValidationError(message, select.places.get("by", select.place), code="invalid-selection")
    yield from select_problems(preflight, select, name)


def select_problems(preflight: Preflight, select: SelectSpec, metric: str) -> Iterator[ValidationError]:
    """Check a `select`: it needs rounds or exams to choose on, and others to report.

    metric: by which the choice is made.
    """
    job, place = preflight.job, select.places.get("by", select.place)
    if select.by == "seeds" and len(job.seeds) < 2:
        yield ValidationError(
            "`by: seeds` chooses on a half of the seeds, and the job has one. Give it more.",
            place,
            code="invalid-selection",
        )
    if select.by == "exam":
        names = [testenv.name for testenv in job.testenvs]
        if len(names) < 2:
            yield ValidationError(
                "`by: exam` chooses on one testenv of the job and reports the others; it has one.",
                place,
                code="invalid-selection",
            )
        elif select.exam is not None and select.exam not in names:
            hint = f"{closest(select.exam, names)} They are: {', '.join(names)}."
            yield ValidationError(
                f"'{select.exam}' is not a testenv of the job.{hint}",
                select.places.get("exam", place),
                code="unknown-reference",
            )
    metrics = (each for exam in job.testenvs for each in exam.metrics)
    if select.by == "first_rounds" and any(each.url and each.score and each.name == metric for each in metrics):
        reason = f"`by: first_rounds` cuts score matrices, and '{metric}' of a `url` is computed of whole ones alone."
        yield ValidationError(
            f"{reason} Sort by a score first, or bring it with a package.", place, code="invalid-selection"
        )
    if select.by == "validation" and preflight.levels.get(metric) not in (None, "score"):
        reason = f"`by: validation` splits the samples of each test set, and '{metric}' is not a score of samples."
        yield ValidationError(
            f"{reason} Sort by a score first, or choose by first_rounds, seeds or exam.",
            place,
            code="invalid-selection",
        )


def range_problems(job: JobSpec) -> Iterator[ValidationError]:
    """Find ranges of hyperparameters in a job without a search."""
    for algorithm in job.algorithms:
        for module in algorithm.modules:
            for name in (name for name, values in module.grid if isinstance(values[0], Range)):
                place = next(iter(module.value_places.get(name, ())), module.places.get(name))
                reason = f"{name} of {algorithm.name} has a range, and the job has no `search` that would draw"
                remedy = "Add `search: {name: random, trials: 50}` to the job, or write values."
                yield ValidationError(f"{reason} from it. {remedy}", place, code="invalid-search")


def search_problems(preflight: Preflight, spec: SearchSpec) -> Iterator[ValidationError]:
    """Check `search`."""
    job = preflight.job
    searched = [algorithm for algorithm in job.algorithms if is_searched(algorithm)]
    if not searched:
        reason = "`search` has nothing to search for: no hyperparameter of the job's algorithms has a range."
        yield ValidationError(
            f"{reason} Write one, such as learning_rate: {{log_uniform: [1e-4, 1e-1]}}.",
            spec.place,
            code="invalid-search",
        )
    if find_spec("optuna") is None:
        yield ValidationError(
            "`search` needs the package optuna: pip install 'ianvs-bench[search]'", spec.place, code="missing-package"
        )
    if job.only is not None or job.limit is not None:
        reason = "--only and --limit select some of the cases, and a search needs all of its trials."
        yield ValidationError(
            f"{reason} Leave them out; `trials` says how many there are.", spec.place, code="conflicting-keys"
        )
    yield from _search_metric_problems(preflight, spec)
    if spec.select is not None:
        yield from select_problems(preflight, spec.select, search_metric(job))
    for algorithm in searched:
        for role, name in job.references.items():
            if name == algorithm.name:
                reason = (
                    f"'{name}' is the reference for {role}, which needs one value of each hyperparameter, not a range."
                )
                yield ValidationError(
                    reason, job.places.get(f"references.{role}", spec.place), code="invalid-reference-run"
                )
        if algorithm.name in job.published:
            reason = f"`published` of {algorithm.name} is for one setting, and a search may find another."
            yield ValidationError(
                f"{reason} Take it out.",
                next(iter(job.published[algorithm.name].values())).place,
                code="invalid-published",
            )


def _search_metric_problems(preflight: Preflight, spec: SearchSpec) -> Iterator[ValidationError]:
    job = preflight.job
    name, place = search_metric(job), spec.places.get("metric", spec.place)
    if wrong := _wrong_column(preflight, "the search metric is", name, "is not a metric of the testenv"):
        yield ValidationError(wrong, place, code="unknown-column")
        return
    base, subject = name.partition(" of ")[0], f"the search metric is '{name}', which"
    for exam in _exams_without(preflight, [name]):
        yield ValidationError(
            f"{subject} the testenv {exam.name} does not list. Add it to its metrics.", place, code="unrequested-scores"
        )
    if preflight.levels.get(base) == "stream":
        yield ValidationError(
            f"{subject} is of a whole stream, and trials pause within it. Name a score.", place, code="invalid-search"
        )
    if preflight.levels.get(base) == "system":
        remedy = "Name a score, or what is computed from one, such as accuracy."
        yield ValidationError(
            f"{subject} measures the costs of a case, not its quality. {remedy}", place, code="invalid-search"
        )
    metrics = [metric for exam in job.testenvs for metric in exam.metrics if metric.name == base]
    if any(metric.score is not None and metric.url is not None for metric in metrics):
        why = "is given by `url` and works on a score matrix: it can be computed for whole cases only"
        yield ValidationError(
            f"{subject} {why}. Search by a score, or bring it with a package.", place, code="invalid-search"
        )
    if any(need in ROLES for metric in metrics for need in metric_header(metric).needs):
        remedy = f"Search by a score, and keep '{name}' for the winner."
        yield ValidationError(f"{subject} needs reference runs for every trial. {remedy}", place, code="invalid-search")
