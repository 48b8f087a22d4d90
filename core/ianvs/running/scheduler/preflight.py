"""Every check that `validate` and `run` share, in the order in which they are made.

What is cheap comes first. A check that stands on others is made only where these have found nothing; all others are
made, so that a user hears of everything at once. `plan`, `report` and the like make those of FILES alone. Nothing is
trained, and no code of an author runs in this process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable

from ianvs.base.errors import ConfigError, IanvsError, Problem, one_line, shown_path
from ianvs.config.spec import JobSpec
from ianvs.exam.kinds.picture_kind import lacks_pictures
from ianvs.processes.engines.engine import Engine
from ianvs.running.inspector import Inspector
from ianvs.running.planning import Plan
from ianvs.running.scheduler import checks, code_checks, column_checks
from ianvs.running.scheduler.case_loop import Listener
from ianvs.running.scheduler.checks import Check, Preflight
from ianvs.running.scheduler.opening import engine_problems
from ianvs.store import CaseStore


def preflight(
    job: JobSpec,
    inspector: Inspector,
    engine: Callable[[Plan | None], Engine],
    listener: Listener,
    runs: Callable[[Plan], bool] = lambda plan: True,
) -> Plan:
    """The plan of `job` when all checks have found nothing; else ConfigError with everything that they have found.

    Its job has the warnings of all of them. runs: whether anything of the plan will run; where nothing will, no code of
    an author is looked at.
    """
    found = Preflight(job, inspector, engine, listener)
    found.make(FILES + PLAN)
    if found.problems or runs(found.plan):
        found.make(CODE)
    return found.checked_plan()


def require_files(job: JobSpec, inspector: Inspector) -> Preflight:
    """Make those checks that cost no more than reading. Raises ConfigError with all slips."""
    found = Preflight(job, inspector)
    found.make(FILES)
    found.insist()
    return found


def plan_files(job: JobSpec, inspector: Inspector) -> Plan:
    """The plan of `job`, whose job has the warnings of `require_files`. Raises ConfigError with all slips."""
    return require_files(job, inspector).checked_plan()


def _workspace(flight: Preflight) -> Iterable[Problem]:
    """Find out before anything runs that results can't be stored."""
    workspace = flight.job.workspace
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=workspace):
            pass
    except OSError as error:
        raise IanvsError(
            f"the workspace {shown_path(workspace)} can't be written: {error.strerror}. "
            "Choose another with `workspace` in the job file or with --workspace."
        ) from error
    return ()


def _plan(flight: Preflight) -> Iterable[Problem]:
    """Two testenvs that are one exam; files of data that can't be read."""
    try:
        _ = flight.plan
    except ConfigError as error:
        return error.problems
    return ()


def missing_pictures(plan: Plan, inspector: Inspector) -> list[Problem]:
    """Finished cases whose predicted label pictures a metric reads, and that kept none.

    A problem for each metric, which names the cases that have to be run again for it.
    """
    authored = {key: spec for scores in plan.scores for spec, key in scores if spec.url is not None}
    told = inspector.metrics(list(authored.values()))
    both = zip(authored, told, strict=True)
    reading = {key for key, metric in both if not isinstance(metric, list) and metric.pictures}
    if not reading:
        return []
    lacking: dict[str, list[str]] = {}
    for planned in plan:
        if planned.state == "finished":
            for _, key in plan.scores_of(planned.algorithm):
                case = planned.case.id
                if key in reading and not plan.store.has_score(case, key) and _lacks_pictures(plan.store, case):
                    lacking.setdefault(key, []).append(case[:8])
    return [Problem(_message(authored[key].name, cases), authored[key].place) for key, cases in lacking.items()]


def _lacks_pictures(store: CaseStore, case_id: str) -> bool:
    """Whether of some round only the first predicted label pictures are stored, not all of them."""
    return any(lacks_pictures(store.extras(case_id, round_.index)) for round_ in store.complete_rounds(case_id))


def _message(name: str, cases: list[str]) -> str:
    count = f"{len(cases)} finished cases" if len(cases) > 1 else "a finished case"
    return (
        f"metric '{name}' reads all predicted label pictures, which were stored only where a metric asked for them, "
        f"and of {count} only counts are: {one_line(cases)}. Run them again (`--rerun all`, or `--rerun` with the "
        "beginning of an id), or let the metric take one argument `confusion`: the counts."
    )


FILES: tuple[Check, ...] = (
    # What the files say of themselves has been checked by load_job, which raises before there is a job; of those in
    # the form of another contract it goes on where it can.
    Check(lambda p: p.job.problems),
    Check(lambda p: engine_problems(p.job)),  # an engine of an author is imported here
    Check(checks.paradigm_problems),  # a file: as for metrics
    Check(checks.setting_problems),
    Check(checks.data_problems),  # index files, pictures; an author's function, once
    Check(checks.scenario_problems),
    Check(checks.metric_problems),  # an author's file: a second in another process, once
    Check(column_checks.sort_problems, stands_on_others=True),
    Check(column_checks.selection_problems, stands_on_others=True),
    Check(column_checks.search_problems, stands_on_others=True),
    Check(column_checks.published_problems, stands_on_others=True),
    Check(checks.quantity_problems, stands_on_others=True),
    Check(checks.reference_problems, stands_on_others=True),
    Check(checks.link_problems, stands_on_others=True),
    Check(checks.forced_problems, stands_on_others=True),
    Check(checks.protocol_problems, stands_on_others=True),
)
"""What costs no more than reading the files."""

PLAN: tuple[Check, ...] = (
    Check(_workspace, stands_on_others=True),
    Check(_plan, stands_on_others=True),  # reads all data once, ever, for their digests
    Check(lambda p: missing_pictures(p.plan, p.inspector), stands_on_others=True),
    Check(column_checks.chosen_round_problems, stands_on_others=True),
)
"""What has to be known to tell what is finished."""

CODE: tuple[Check, ...] = (
    Check(code_checks.sealing_problems, stands_on_others=True),  # opens the engine
    Check(code_checks.plugin_problems),  # imports them, torch too: seconds
    Check(code_checks.exam_problems, stands_on_others=True),  # decodes the data, once
    Check(column_checks.chosen_round_problems, stands_on_others=True),  # of those that are prepared now
    Check(code_checks.fit_problems, stands_on_others=True),  # asks those plugins that want to see the exam
)
"""What takes processes of an engine, or time."""
