"""What is wrong with a job's `search`, and with ranges of hyperparameters, before anything is tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec

from ianvs.base.errors import Place, Problem
from ianvs.config.contracts import contract_of
from ianvs.config.spec import AlgorithmSpec, JobSpec, Range
from ianvs.exam.metrics.metric_columns import columns_named
from ianvs.exam.metrics.registry import metric_header
from ianvs.running.planning import Plan
from ianvs.running.planning.references import ROLES
from ianvs.running.planning.studies import is_searched, search_metric
from ianvs.running.scheduler.checks import columns_of, wrong_column
from ianvs.running.scheduler.searching import FIRST_RUNG, last_round
from ianvs.running.scheduler.selection_checks import problems_of_select, round_problems
from ianvs.store import ExamRecord

__all__ = ["search_problems", "search_round_problems"]


def search_problems(job: JobSpec, levels: Mapping[str, str]) -> Iterator[Problem]:
    """levels: of metrics, by name."""
    spec = job.search
    if spec is None:
        for algorithm in job.algorithms:
            for name, place in _ranges(algorithm):
                told = f"{name} of {algorithm.name} has a range, and the job has no `search` that would draw from it."
                yield Problem(f"{told} Add `search: {{name: random, trials: 50}}` to the job, or write values.", place)
        return
    if (contract := contract_of(job)).runs_cases:
        who = f"algorithms under `contract: {contract.name}`"
        told = f"a search stops and resumes cases after rounds, which {who} have no part in"
        yield Problem(f"{told}. Take `search` out, and write values in the place of ranges.", spec.place)
        return
    searched = [algorithm for algorithm in job.algorithms if is_searched(algorithm)]
    if not searched:
        told = "`search` has nothing to search for: no hyperparameter of the job's algorithms has a range."
        yield Problem(f"{told} Write one, such as learning_rate: {{log_uniform: [1e-4, 1e-1]}}.", spec.place)
    if find_spec("optuna") is None:
        yield Problem("`search` needs the package optuna: pip install 'ianvs[search]'", spec.place)
    if job.only is not None or job.limit is not None:
        told = "--only and --limit take a part of the cases, and a search goes by all of its trials."
        yield Problem(f"{told} Leave them out; `trials` says how many there are.", spec.place)
    yield from _metric_problems(job, levels)
    yield from problems_of_select(job, levels, spec.select, search_metric(job))
    for algorithm in searched:
        for role, name in job.references.items():
            if name == algorithm.name:
                told = f"'{name}' is the reference for {role}, of which there has to be one choice, and it has a range."
                yield Problem(told, job.places.get(f"references.{role}", spec.place))
        if algorithm.name in job.published:
            told = f"`published` of {algorithm.name} is of one setting, and a search would find another."
            yield Problem(f"{told} Take it out.", next(iter(job.published[algorithm.name].values())).place)


def _metric_problems(job: JobSpec, levels: Mapping[str, str]) -> Iterator[Problem]:
    spec = job.search
    assert spec is not None
    name, place = search_metric(job), spec.places.get("metric", spec.place)
    columns = columns_of(job, dict(levels))
    if wrong := wrong_column("search goes by", name, columns, "is no metric of the testenv"):
        yield Problem(wrong, place)
        return
    for exam, of_exam in zip(job.testenvs, columns, strict=True):
        if not columns_named(name, of_exam):
            told = f"search goes by '{name}', which the testenv {exam.name} does not ask for"
            yield Problem(f"{told}. Add it to its metrics.", place)
    base = name.partition(" of ")[0]
    if levels.get(base) == "system":
        told = f"search goes by '{name}', which says what a case costs, not what it is worth. Name a score,"
        yield Problem(f"{told} or what is computed from one, such as accuracy.", place)
    if any(
        one.name == base and one.of is not None and one.url is not None for exam in job.testenvs for one in exam.metrics
    ):
        told = f"search goes by '{name}', which is of a `url` and over a score matrix: that is computed of whole cases"
        yield Problem(f"{told} alone. Search by a score, or bring it with a package.", place)
    needs = {
        need for exam in job.testenvs for one in exam.metrics if one.name == base for need in metric_header(one).needs
    }
    if needs & set(ROLES):
        told = f"search goes by '{name}', which needs reference runs for every trial"
        yield Problem(f"{told}. Search by a score, and keep '{name}' for the winner.", place)


def search_round_problems(plan: Plan, records: Mapping[str, ExamRecord | None]) -> Iterator[Problem]:
    """What does not fit the exams, of those that are prepared."""
    for study in plan.studies:
        exam, spec = records.get(study.any_base.exam_id), study.spec
        if exam is None:
            continue
        yield from round_problems(exam, spec.select)
        first, last = spec.first_rung or FIRST_RUNG, last_round(study, len(exam.rounds))
        if spec.name == "asha" and first >= last:
            told = f"no trial of {study.any_base.spec.name} can be stopped: the first rung is round {first}"
            remedy = "Take an exam of more rounds, or `name: random` or `tpe`"
            place = spec.places.get("first_rung", spec.place)
            yield Problem(f"{told}, and the search sees {last}. {remedy}.", place, warning=True)


def _ranges(algorithm: AlgorithmSpec) -> Iterator[tuple[str, Place | None]]:
    for module in algorithm.modules:
        for name, values in module.grid:
            if isinstance(values[0], Range):
                yield name, next(iter(module.value_places.get(name, ())), module.places.get(name))
