"""Runs the searches of a job: waves of trials, which an engine runs as any other cases, until all have a winner.

Trials and their values are stored before and after each wave, so that nothing is lost or repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ianvs.base.secrets import without_secrets
from ianvs.config.spec import Range
from ianvs.exam.metrics.metric_columns import MetricColumn, columns_named
from ianvs.results.report.trials import drawn_text
from ianvs.results.stored.selection import seen_results_text, worth_after
from ianvs.running.inspector import Inspector
from ianvs.running.next_trials import REDUCTION, next_wave, record_value, rungs_of
from ianvs.running.planning.plan import Plan, job_columns
from ianvs.running.planning.references import PlannedReferences
from ianvs.running.planning.studies import PlannedStudy
from ianvs.running.scheduler.case_loop import Listener
from ianvs.store import Axis, ExamRecord, ExamStore, Study, StudyStore, Trial

FIRST_RUNG = 2  # default of `first_rung`


@dataclass
class _Search:
    planned: PlannedStudy
    study: Study
    exam: ExamRecord
    column: MetricColumn
    columns: Sequence[MetricColumn]


def run_searches(plan: Plan, run_cases: Callable[[Plan], bool], listener: Listener, inspector: Inspector) -> bool:
    """Run all searches. Returns whether they were interrupted.

    run_cases: runs the unfinished cases of a plan, and returns whether it was interrupted.
    """
    job, store = plan.job, StudyStore(plan.job.workspace, plan.job.name)
    columns = job_columns(job, inspector)
    searches = [_restore_search(planned, plan, columns) for planned in plan.studies if not planned.ended]
    try:
        while True:
            for search in searches:
                search.study = next_wave(search.study, search.planned.spec, search.planned.space)
                search.planned = replace(search.planned, stored=search.study)
                store.write(search.study)
            waiting = [(search, trial) for search in searches for trial in search.study.trials if trial.waits]
            if not waiting:
                return False
            stages = [stage for search, trial in waiting for stage in search.planned.stage(trial)]
            wave = replace(
                plan,
                job=replace(job, fail_fast=False, only=None, limit=None),  # a failed trial is a result
                algorithms=tuple(stages),
                references=PlannedReferences(),
                studies=(),
            )
            listener.more(sum(planned.runs for planned in wave), tuple(search.study for search in searches))
            interrupted = run_cases(wave)
            for search, trial in waiting:
                _record_value(search, trial, plan)
            for search in searches:
                store.write(search.study)
            if interrupted or any(trial.waits for search in searches for trial in search.study.trials):
                return True
    except KeyboardInterrupt:
        return True


def last_round(planned: PlannedStudy, exam: ExamRecord) -> int:
    """Return the last round that the search may use."""
    select, rounds = planned.spec.select, _rounds(planned, exam)
    return min(select.rounds or rounds, rounds) if select is not None and select.by == "first_rounds" else rounds


def outline(planned: PlannedStudy, plan: Plan) -> str:
    """Describe what a search will do, or its result."""
    spec, base, stored = planned.spec, planned.any_base, planned.stored
    exam = f" in {base.testenv_name}" if base.testenv_name else ""
    space = "; ".join(f"{name} {_without_secrets(name, space_range)}" for name, space_range in planned.space.items())
    text = f"search for {base.spec.name}{exam}: {spec.name}, {spec.trials} trials of {space}; by {planned.metric} "
    text += f"{seen_results_text(spec.select, planned.seeds)}."
    if planned.ended and stored is not None:
        won = None if stored.winner is None else stored.trials[stored.winner - 1]
        ending = f"trial {won.number} won ({drawn_text(won)})." if won else "no trial came to an end."
        return f"{text} It has ended: {ending}"
    record = ExamStore(plan.job.workspace).record(base.exam_id)
    if record is not None:
        first, *above = map(str, _rungs(planned, record))
        best = f"Trials go to round {first}, the best of them to {' and '.join(above)}."
        text += f" {best}" if above else f" Every trial goes to round {first}."
    elif spec.name == "asha":
        text += " Where trials are stopped depends on the rounds of the exam, which is not prepared yet."
    trials = 0 if stored is None else len(stored.trials)
    return f"{text} {trials} asked for so far; the winner is run with all {len(planned.bases)} seeds."


def _without_secrets(name: str, space_range: Range) -> Range:
    """Return a range without secrets among its choices."""
    return replace(space_range, choices=tuple(without_secrets({name: choice})[name] for choice in space_range.choices))


def _rounds(planned: PlannedStudy, exam: ExamRecord) -> int:
    return 1 if planned.any_base.paradigm.as_one else len(exam.rounds)


def _rungs(planned: PlannedStudy, exam: ExamRecord) -> tuple[int, ...]:
    spec, last = planned.spec, last_round(planned, exam)
    if spec.name != "asha":
        return (last,)
    return rungs_of(spec.first_rung or FIRST_RUNG, spec.reduction or REDUCTION, last)


def _restore_search(planned: PlannedStudy, plan: Plan, columns: Mapping[str, Sequence[MetricColumn]]) -> _Search:
    """Restore a search from its stored trials. Its exam has to be prepared."""
    base, spec = planned.any_base, planned.spec
    exam = ExamStore(plan.job.workspace).record(base.exam_id)
    assert exam is not None, "every exam is prepared before a case runs"
    of_exam = columns[base.testenv_name]
    name = columns_named(planned.metric, [column.name for column in of_exam])[0]
    column = next(entry for entry in of_exam if entry.name == name)
    how: dict[str, object] = {"name": spec.name, "batch": spec.batch, "seed": spec.seed}
    if spec.name == "asha":
        how |= {"sampler": spec.sampler or "random", "reduction": spec.reduction or REDUCTION}
    study = planned.stored or Study(
        key=planned.key,
        algorithm=base.spec.name,
        testenv=base.testenv_name,
        search_settings=how,
        metric=name,
        higher_is_better=column.metric.higher_is_better,
        values_description=seen_results_text(spec.select, planned.seeds),
        seeds=planned.seeds,
        rungs=_rungs(planned, exam),
        rounds=_rounds(planned, exam),
        axes=tuple(
            Axis(name, entry.kind, entry.low, entry.high, entry.choices) for name, entry in planned.space.items()
        ),
    )
    return _Search(planned, study, exam, column, of_exam)


def _record_value(search: _Search, trial: Trial, plan: Plan) -> None:
    """Record the value of a trial, the mean over its seeds, unless it was interrupted."""
    worth: list[float | None] = []
    for stage in search.planned.stage(trial):
        for case in stage.cases(plan.job.seeds):
            value_now = worth_after(
                plan.store, case.id, search.column, search.columns, search.exam, stage.until, search.planned.spec.select
            )
            ended = plan.store.status(case.id) in ("failed", "finished")
            paused = stage.until is not None and plan.store.has_score(case.id, search.column.key, stage.until)
            if value_now is None and not (ended or paused):
                return
            worth.append(value_now)
    values = [value for value in worth if value is not None]
    search.study = record_value(
        search.study, trial.number, sum(values) / len(values) if len(values) == len(worth) else None
    )
