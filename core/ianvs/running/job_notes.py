"""Notes for readers on the job's settings and data."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ianvs.base.errors import DamagedError, one_line
from ianvs.base.secrets import hide_secrets
from ianvs.config.spec import JobSpec
from ianvs.exam import data
from ianvs.exam.data.data_warnings import SHARED
from ianvs.exam.metrics.registry import find, metric_header
from ianvs.exam.scenarios.per_seed_exam import CASE, seeds_of_case
from ianvs.results.report.document import Note
from ianvs.results.stored import Results
from ianvs.running.planning.cases import PlannedAlgorithm
from ianvs.running.planning.plan import Plan
from ianvs.running.planning.stored_cases import EarlierCase, earlier_case_sentences
from ianvs.store import CaseStore, ExamRecord, ExamStore

_MADE_ANEW = "`ianvs run --rerun CASE` makes them anew, with the source of today."


def job_notes(plan: Plan) -> tuple[Note, ...]:
    """Return notes in the order of reports; for prepared exams with warnings on their samples."""
    store = ExamStore(plan.job.workspace)
    exams = {planned.exam_id: planned for planned in plan.algorithms}.values()
    built = [(planned, exam) for planned in exams if (exam := store.record(planned.exam_id)) is not None]
    doubts = [
        (planned.testenv_name, doubt)
        for planned, record in built
        for doubt in data_warnings_text(plan, planned, record)
    ]
    of_data = dict.fromkeys(Note("data", doubt, name, "testenv") for name, doubt in doubts)
    return (
        *_override_notes(plan),
        *_order_in_sandboxes(plan),
        *_accepted_case_notes(plan),
        *_exams(plan.job),
        *of_data,
    )


def data_warnings_text(plan: Plan, planned: PlannedAlgorithm, exam: ExamRecord) -> list[str]:
    """Return warnings on the samples of the exam of `planned`; [] before they were checked."""
    doubts = data.data_warnings_of(str(planned.exam["dataset"]), plan.job.workspace / "cache") or {}
    # If only future rounds are evaluated, both parts are meant to be the same samples.
    future = exam.rules.get("asked") == "future"
    return [doubt for name, doubt in doubts.items() if not (name == SHARED and future)]


def with_earlier_cases(
    results: Results, store: CaseStore, earlier: Mapping[str, EarlierCase], *, shown: bool
) -> Results:
    """Return `results` with a note on `earlier` cases, by the id that they would have now.

    Shown: also with these cases.
    """
    if not earlier:
        return results
    remedy = "`ianvs run` makes them anew."
    if not shown:
        remedy = f"`ianvs report --stored` shows them; {remedy}"
    if all(case_before.other_source_alone for case_before in earlier.values()):
        remedy = f"{remedy[:-1]}, and `ianvs run --keep` counts them as they are."
    counts = Counter(case_before.description for case_before in earlier.values())
    notes = [Note("version", f"{sentence}.", remedy=remedy) for sentence in earlier_case_sentences(counts)]
    cases = list(results.case_list)
    for place, case in enumerate(cases if shown else ()):
        match = earlier.get(case.id)
        before = store.case(match.case_id) if match is not None else None
        if match is not None and before is not None:
            name = f"{case.algorithm} ({match.description.removeprefix('by an ')})"
            cases[place] = replace(case, id=before.id, row=before.row, algorithm=name)
    return replace(results, case_list=tuple(cases), job_notes=(*notes, *results.job_notes))


def _override_notes(plan: Plan) -> Iterator[Note]:
    """Yield settings from the command line or a call that replaced those of the files."""
    job = plan.job
    overrides = [f"--set {hide_secrets(override.text, {override.key: override.value})}" for override in job.overrides]
    chosen = [f"--only '{job.only}'"] if job.only is not None else []
    chosen += [f"--limit {job.limit}"] if job.limit is not None else []
    if chosen:
        every = sum(
            len(algorithm) * len(algorithm.seeds(job.seeds)) for algorithm in plan.algorithms if not algorithm.role
        )
        shown = sum(1 for case, _ in plan.cases() if not case.role)
        text = f"Shows {shown} of the job's {every} cases, by {' '.join([*overrides, *chosen])}."
        yield Note("settings", text, remedy="`ianvs report` without these options shows all that are stored.")
    elif overrides:
        yield Note("settings", f"Made with {' '.join(overrides)}, in place of what the job's files say.")


def _order_in_sandboxes(plan: Plan) -> Iterator[Note]:
    """Yield a note on the order in which sandboxed cases were trained and evaluated."""
    times: dict[str, Mapping[str, str]] = {}
    for case, _ in plan.cases() if plan.job.sandboxed else ():
        with suppress(DamagedError):
            facts = plan.store.facts(case.id).get("provenance", {}).get("sandboxes", {})
            if "evaluated_at" in facts:
                times[f"{case.algorithm} seed {case.seed} ({case.id[:8]})"] = facts
    first = min((facts["evaluated_at"] for facts in times.values()), default="")
    later = [label for label, facts in times.items() if facts["trained_at"] > first]
    if any(facts["examine"] != "after all cases" for facts in times.values()):
        order = "each case was trained before it was evaluated, others after that (`examine: after each case`)"
    elif later:
        order = f"cases were trained before any was evaluated; added later: {one_line(later, 6)}"
    else:
        order = "every case was trained before any was evaluated"
    if times:
        yield Note("settings", f"In sandboxes, {order}.")


def _accepted_case_notes(plan: Plan) -> Iterator[Note]:
    """Yield notes on cases of an earlier source, by the files that have changed since."""
    cases: dict[tuple[str, ...], list[str]] = {}
    for case, _ in plan.cases() if plan.accepted_sources else ():
        if case.id in plan.accepted_sources:
            label = f"{case.algorithm} seed {case.seed} ({case.id[:8]})"
            cases.setdefault(plan.accepted_sources[case.id], []).append(label)
    for files, labels in cases.items():
        which = f"{len(labels)} case{' was' if len(labels) == 1 else 's were'} kept"
        made = f"made by an earlier {one_line(files, 3)}: {one_line(labels, 6)}"
        yield Note("version", f"{which} that {'was' if len(labels) == 1 else 'were'} {made}.", remedy=_MADE_ANEW)


def _exams(job: JobSpec) -> Iterator[Note]:
    for exam in job.testenvs:
        name = exam.name if len(job.testenvs) > 1 else ""
        if drawn := seeds_of_case(exam.scenario):
            options = " and ".join(f"`{option}: {CASE}`" for option in drawn)
            where = f" in {name}" if name else ""
            text = f"Each seed takes an exam of its own{where} ({options}), the same for all algorithms."
            yield Note("data", text, about="testenv")
        for metric in exam.metrics:
            if metric.url is not None and find(metric.name) and metric_header(metric).level != "reported":
                text = (
                    f"'{metric.name}' is computed by {Path(metric.url).name}, and is not ianvs's metric of that name."
                )
                yield Note("metric", text, name, "testenv")
