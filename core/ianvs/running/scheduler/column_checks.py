"""Names of columns, in `sort_by`, `published`, `select` and `search`, and what these ask for that can't be had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from ianvs.base.errors import Place, Problem, closest
from ianvs.config.contracts import contract_of
from ianvs.config.spec import Range, SelectSpec
from ianvs.exam.metrics.metric_columns import columns_named
from ianvs.exam.metrics.registry import metric_header
from ianvs.running.planning import cells
from ianvs.running.planning.references import ROLES
from ianvs.running.planning.studies import is_searched, search_metric
from ianvs.running.scheduler.checks import Preflight
from ianvs.running.scheduler.searching import FIRST_RUNG, last_round
from ianvs.store import ExamRecord, ExamStore


def sort_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with `sort_by`."""
    job, columns = flight.job, flight.columns
    names = [name for name, _ in job.rank.sort_by]
    wrong = [(said, name) for name in names if (said := _wrong_column("sort_by names", name, columns))]
    for said, name in wrong:
        yield Problem(said, job.rank.places.get(name) or Place(job.file))
    for exam, of_exam in zip(job.testenvs, columns, strict=True):
        if not wrong and not any(columns_named(name, of_exam) for name in names):
            listed = ", ".join(sorted(set(names)))
            message = f"nothing ranks this exam: sort_by names {listed}. Add one to its metrics."
            yield Problem(message, exam.places.get("metrics", exam.place))
            return


def published_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with `published`, which is of one row."""
    job = flight.job
    algorithms = {algorithm.name: algorithm for algorithm in job.algorithms}
    for algorithm, specs in job.published.items():
        first = next(iter(specs.values())).place
        if len(job.testenvs) > 1:
            message = f"`published` of {algorithm} is of one exam, and the job has {len(job.testenvs)} testenvs."
            yield Problem(f"{message} Give each testenv a job of its own.", first)
        if (count := cells(algorithms[algorithm].modules)) > 1:
            message = f"`published` of {algorithm} is of one setting, and its hyperparameters give {count}."
            yield Problem(f"{message} Keep one value of each, or take `published` out.", first)
        for name, spec in specs.items():
            if wrong := _wrong_column("published names", name, flight.columns):
                yield Problem(wrong, spec.place)
            elif flight.levels.get(name) == "score" and spec.unit == "fraction" and 1 < abs(spec.mean) <= 100:
                message = f"is {spec.mean:g} a percentage? Scores are fractions here: write `unit: percent` if it is."
                yield Problem(message, spec.places.get("mean", spec.place), warning=True)


def _wrong_column(said: str, name: str, columns: Sequence[Sequence[str]], what: str = "is not a column") -> str:
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


def selection_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with `rank.select`: nothing to choose on, or nothing left to report."""
    return _problems_of_select(flight, flight.job.rank.select, flight.job.rank.sort_by[0][0])


def _problems_of_select(flight: Preflight, select: SelectSpec | None, metric: str) -> Iterator[Problem]:
    """metric: by which the choice is made."""
    if select is None:
        return
    job, place = flight.job, select.places.get("by", select.place)
    if select.by == "seeds" and len(job.seeds) < 2:
        yield Problem("`by: seeds` chooses on a half of the seeds, and the job has one. Give it more.", place)
    if select.by == "exam":
        names = [testenv.name for testenv in job.testenvs]
        if len(names) < 2:
            yield Problem("`by: exam` chooses on one testenv of the job and reports the others; it has one.", place)
        elif select.exam is not None and select.exam not in names:
            told = (
                f"'{select.exam}' is no testenv of the job.{closest(select.exam, names)} They are: {', '.join(names)}."
            )
            yield Problem(told, select.places.get("exam", place))
    metrics = (one for exam in job.testenvs for one in exam.metrics)
    if select.by == "first_rounds" and any(one.url and one.of and one.name == metric for one in metrics):
        told = f"`by: first_rounds` cuts score matrices, and '{metric}' of a `url` is computed of whole ones alone."
        yield Problem(f"{told} Sort by a score first, or bring it with a package.", place)
    if select.by == "validation" and flight.levels.get(metric) not in (None, "score"):
        told = f"`by: validation` splits the samples of each test set, and '{metric}' is no score of samples."
        yield Problem(f"{told} Sort by a score first, or choose by first_rounds, seeds or exam.", place)


def search_problems(flight: Preflight) -> Iterator[Problem]:
    """What is wrong with `search`, and with ranges of hyperparameters, before anything is tried."""
    job, spec = flight.job, flight.job.search
    if spec is None:
        for algorithm in job.algorithms:
            for module in algorithm.modules:
                for name in (name for name, values in module.grid if isinstance(values[0], Range)):
                    place = next(iter(module.value_places.get(name, ())), module.places.get(name))
                    told = f"{name} of {algorithm.name} has a range, and the job has no `search` that would draw"
                    remedy = "Add `search: {name: random, trials: 50}` to the job, or write values."
                    yield Problem(f"{told} from it. {remedy}", place)
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
    yield from _search_metric_problems(flight)
    yield from _problems_of_select(flight, spec.select, search_metric(job))
    for algorithm in searched:
        for role, name in job.references.items():
            if name == algorithm.name:
                told = f"'{name}' is the reference for {role}, of which there has to be one choice, and it has a range."
                yield Problem(told, job.places.get(f"references.{role}", spec.place))
        if algorithm.name in job.published:
            told = f"`published` of {algorithm.name} is of one setting, and a search would find another."
            yield Problem(f"{told} Take it out.", next(iter(job.published[algorithm.name].values())).place)


def _search_metric_problems(flight: Preflight) -> Iterator[Problem]:
    job, spec, columns = flight.job, flight.job.search, flight.columns
    assert spec is not None
    name, place = search_metric(job), spec.places.get("metric", spec.place)
    if wrong := _wrong_column("search goes by", name, columns, "is no metric of the testenv"):
        yield Problem(wrong, place)
        return
    for exam, of_exam in zip(job.testenvs, columns, strict=True):
        if not columns_named(name, of_exam):
            told = f"search goes by '{name}', which the testenv {exam.name} does not ask for"
            yield Problem(f"{told}. Add it to its metrics.", place)
    base = name.partition(" of ")[0]
    if flight.levels.get(base) == "system":
        told = f"search goes by '{name}', which says what a case costs, not what it is worth. Name a score,"
        yield Problem(f"{told} or what is computed from one, such as accuracy.", place)
    metrics = [one for exam in job.testenvs for one in exam.metrics if one.name == base]
    if any(one.of is not None and one.url is not None for one in metrics):
        told = f"search goes by '{name}', which is of a `url` and over a score matrix: that is computed of whole cases"
        yield Problem(f"{told} alone. Search by a score, or bring it with a package.", place)
    if any(need in ROLES for one in metrics for need in metric_header(one).needs):
        told = f"search goes by '{name}', which needs reference runs for every trial"
        yield Problem(f"{told}. Search by a score, and keep '{name}' for the winner.", place)


def chosen_round_problems(flight: Preflight) -> Iterator[Problem]:
    """Of exams that are prepared already: what is finished is ranked anew by every report."""
    select = flight.job.rank.select
    if select is None and flight.job.search is None:
        return
    exams = ExamStore(flight.job.workspace)
    records = {of.exam_id: exams.record(of.exam_id) for of in flight.plan.algorithms}
    for record in filter(None, records.values()):
        yield from _round_problems(record, select)
    for study in flight.plan.studies:
        exam, spec = records.get(study.any_base.exam_id), study.spec
        if exam is None:
            continue
        yield from _round_problems(exam, spec.select)
        first, last = spec.first_rung or FIRST_RUNG, last_round(study, len(exam.rounds))
        if spec.name == "asha" and first >= last:
            told = f"no trial of {study.any_base.spec.name} can be stopped: the first rung is round {first}"
            remedy = "Take an exam of more rounds, or `name: random` or `tpe`"
            place = spec.places.get("first_rung", spec.place)
            yield Problem(f"{told}, and the search sees {last}. {remedy}.", place, warning=True)


def _round_problems(exam: ExamRecord, select: SelectSpec | None) -> Iterator[Problem]:
    """What of `by: first_rounds` doesn't fit an exam."""
    if select is None or select.by != "first_rounds" or select.rounds is None:
        return
    place = select.places.get("rounds", select.place)
    if len(exam.tests) != len(exam.rounds):
        told = f"needs a test set for each round, and this exam has {len(exam.rounds)} rounds and {len(exam.tests)}"
        yield Problem(f"`by: first_rounds` {told} test sets. Choose by seeds or validation.", select.place)
    elif select.rounds >= len(exam.rounds):
        told = f"{select.rounds} rounds to choose on leave none to report: the exam has {len(exam.rounds)}."
        yield Problem(f"{told} Take fewer.", place)
