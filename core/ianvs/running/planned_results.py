"""Returns the results of a plan's cases, or explains why none are stored."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ianvs.base.errors import ConfigError, IanvsError, counted_cases, one_line, shown_path
from ianvs.base.secrets import without_secrets
from ianvs.base.types import TestCase
from ianvs.config import resolved
from ianvs.config.contracts import runner_of
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import JobSpec
from ianvs.results.report.document import Note
from ianvs.results.stored import Results, load_results
from ianvs.running.contamination import overlaps
from ianvs.running.inspector import Inspector
from ianvs.running.job_notes import job_notes, with_earlier_cases
from ianvs.running.planning.plan import CHANGED_SINCE, Plan, job_columns
from ianvs.running.planning.stored_cases import stored_ids
from ianvs.running.scoring import missing_pictures
from ianvs.store import JobStore, Study

_MOST_REASONS = 1_000  # maximum number of new cases that a report explains


def results_of(plan: Plan, provenance: Mapping[str, object], inspector: Inspector) -> Results:
    """Return the stored results of the planned cases; they are read on demand."""
    job = plan.job
    exams_ = {exam.name if len(job.testenvs) > 1 else "": exam for exam in job.testenvs}
    metrics = job_columns(job, inspector)
    single = [(name, column) for name in exams_ for column in metrics[name] if not column.metric.mapping]
    listed = [column.name for name, column in single if column.spec in exams_[name].metrics]
    columns = dict.fromkeys(listed or [column.name for _, column in single])
    planned = list(plan.cases())
    seeds = len(job.seeds)
    if job.only is not None or job.limit is not None:  # a row is complete with the requested seeds
        seeds = len({case.seed for case, _ in planned if not case.role})
    references = {case.id: plan.references.ids(case, algorithm) for case, algorithm in planned}
    return Results(
        name=job.name,
        workspace=job.workspace,
        rank=job.rank if job.search is None else replace(job.rank, select=job.search.select),
        seeds=seeds,
        metrics=metrics,
        columns=tuple(columns),
        case_list=tuple(_without_secrets(case) for case, _ in planned),
        provenance={**provenance, "configuration": resolved(job)},
        references={case_id: ids for case_id, ids in references.items() if ids},
        budgets={name: exam.budget for name, exam in exams_.items() if exam.budget is not None},
        published=job.published,
        titles={name: exam.dataset.title for name, exam in exams_.items() if exam.dataset.title is not None},
        overlaps=overlaps(plan),
        job_notes=job_notes(plan),
        studies=tuple(_shown_study(study.stored) for study in plan.studies if study.stored is not None),
        contract=NATIVE if (runner := runner_of(job.algorithms[0])) is None else runner.name,
    )


def _without_secrets(case: TestCase) -> TestCase:
    """Return a case as it is stored: without secrets."""
    return replace(case, hyperparameters=without_secrets(case.hyperparameters))


def _shown_study(study: Study) -> Study:
    trials = (replace(trial, drawn=without_secrets(trial.drawn)) for trial in study.trials)
    return replace(study, trials=tuple(trials))


def stored_results_of(
    plan: Plan, provenance: Mapping[str, object], inspector: Inspector, *, earlier_too: bool
) -> Results:
    """Return the stored results of the planned cases, or of the job's last run if there are none.

    Args:
        plan: The plan.
        provenance: Facts about this process; its command is replaced by that of the last run, which made the cases.
        inspector: Inspects plugins.
        earlier_too: Also return cases from before a change, in separate rows.

    Raises:
        ConfigError: If segmentation masks of the data are needed and missing.
        IanvsError: If nothing is stored.
    """
    earlier = {case.id: case_before for case, case_before in plan.earlier_cases()}
    ids = stored_ids(plan.store)
    if not (earlier_too and earlier) and not any(case.id in ids for case, _ in plan.cases()):
        return results_of_last_run(plan)
    if problems := missing_pictures(plan, inspector):
        raise ConfigError(problems)
    last = (JobStore(plan.job.workspace, plan.job.name).read() or {}).get("provenance") or {}
    command = {"command": last["command"]} if last.get("command") else {}
    results = results_of(plan, {**provenance, **command}, inspector)
    results = replace(results, job_notes=(*_missing_scores(plan), *results.job_notes))
    return with_earlier_cases(results, plan.store, earlier, shown=earlier_too)


def _missing_scores(plan: Plan) -> Iterator[Note]:
    """Yield a note on metrics that were added after cases had finished: without it, their columns are just empty."""
    missing: dict[str, None] = {}  # ordered
    cases = 0
    for planned in plan.stored():
        if planned.state == "finished" and planned.action == "score":
            keys = plan.store.state(planned.case.id).score_keys
            missing |= dict.fromkeys(metric.name for metric, key in planned.algorithm.scores if key not in keys)
            cases += 1
    if missing:
        text = f"Not computed yet in {counted_cases(cases)}: {one_line(list(missing))}."
        them = "it" if len(missing) == 1 else "them"
        job = shown_path(plan.job.file)
        remedy = f"`ianvs -f {job}` computes {them} from the stored predictions, without training."
        yield Note("partial", text, remedy=remedy)


def results_of_last_run(plan: Plan) -> Results:
    """Return the results of the job's last run, with code or settings that have changed since.

    Raises:
        IanvsError: If there are none, or the job now has other cases.
    """
    job = plan.job
    changed = [planned.reason for planned in islice(plan, _MOST_REASONS) if planned.reason.startswith(CHANGED_SINCE)]
    if JobStore(job.workspace, job.name).read() is None:
        raise IanvsError(nothing_stored_message(job.workspace), code="missing-results")
    results = load_results(job.workspace, job.name)
    if not changed:
        raise IanvsError(_other_settings(results), code="missing-results")
    packages = results.provenance.get("packages")
    version = packages.get("ianvs") if isinstance(packages, Mapping) else None
    since = {part for reason in changed for part in re.split("[;,] ", reason.partition(": ")[2].replace("source ", ""))}
    made = f"Made by ianvs {version or 'of an unknown version'}, before these changed: {one_line(sorted(since), 6)}."
    mark = Note("version", made, remedy="`ianvs run` makes the results anew.")
    return replace(results, job_notes=(mark, *(note for note in results.job_notes if note.kind != "version")))


def nothing_stored_message(workspace: Path) -> str:
    """Return the message that nothing of a job is stored, with the searched folder."""
    return (
        f"nothing of this job is stored in {shown_path(workspace)}. A relative `workspace` is "
        "below the folder that ianvs is called from: call it from there, or name the workspace with --workspace."
    )


def nothing_current_message(job: JobSpec) -> str:
    """Return the message that nothing is stored of the present job, and how to read what is stored instead."""
    if JobStore(job.workspace, job.name).read() is None:
        return nothing_stored_message(job.workspace)
    return (
        "no results are stored for the present state of the job: `ianvs plan` shows what has changed, and "
        "`ianvs report` shows the earlier results."
    )


def _other_settings(results: Results) -> str:
    """Return the message that a job has results, but none for the requested settings, with the settings that it has."""
    values: dict[str, dict[str, None]] = {}
    for case in results.case_list:
        for name, value in {"seed": case.seed, **case.hyperparameters}.items():
            values.setdefault(name, {})[str(value)] = None
    stored = "; ".join(f"{name} {one_line(list(choices), 6)}" for name, choices in values.items())
    return (
        f"nothing is stored for these settings. The last run of the job was `{results.provenance.get('command')}`, and "
        f"stored {len(results)} cases: {stored}."
    )
