"""Plans a job: its test cases in a fixed order, with what to do for each, and why."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice, zip_longest
from typing import Any, Literal

from ianvs.base.digests import CHANGED_MESSAGE
from ianvs.base.errors import ConfigError, DamagedError, ValidationError, one_line, shown_path
from ianvs.base.types import REPEAT_ROLE, TestCase
from ianvs.config.contracts import runner_of
from ianvs.config.spec import DatasetSpec, JobSpec, MetricSpec, TestEnvSpec, secrets_in
from ianvs.exam import data
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_columns import MetricColumn, metric_columns
from ianvs.exam.metrics.registry import metric_header
from ianvs.exam.scenarios.per_seed_exam import seeds_of_case, with_seed
from ianvs.running.inspector import Inspector
from ianvs.running.planning.case_conditions import alternatives, fits
from ianvs.running.planning.cases import PerSeedExam, PlannedAlgorithm, repetition_of
from ianvs.running.planning.identity import algorithm_identity, exam_identity, metric_key
from ianvs.running.planning.references import PlannedReferences, plan_references
from ianvs.running.planning.server_version import with_server_version
from ianvs.running.planning.stored_cases import (
    EarlierCase,
    accepted_cases,
    cases_of_other_source,
    stored_cases,
    stored_ids,
)
from ianvs.running.planning.studies import PlannedStudy, is_searched, plan_studies
from ianvs.store import CaseState, CaseStore, ExamStore, JobStore, StudyStore
from ianvs.store.identity_differences import identity_differences
from ianvs.store.keys import digest

CHANGED_SINCE = "changed since"  # prefix of the reason for a case that has run under another identity

Action = Literal["run", "resume", "score", "prepare", "nothing"]
"""prepare: only the exam of the case is missing or damaged."""


@dataclass(frozen=True)
class PlannedCase:
    """A test case, its state on disk, and what `ianvs run` would do with it.

    Attributes:
        damaged: Files below the workspace that are missing or changed after the case had ended; they are restored.
        stored: The state of a finished case without anything to do.
        earlier: The job's earlier case in the same exam, of a case of which nothing is stored.
    """

    case: TestCase
    algorithm: PlannedAlgorithm
    state: Literal["new", "finished", "failed", "unfinished", "stopped"]
    action: Action
    reason: str
    damaged: tuple[str, ...] = ()
    stored: CaseState | None = field(default=None, repr=False, compare=False)
    earlier: EarlierCase | None = field(default=None, repr=False, compare=False)

    @property
    def runs(self) -> bool:
        """Whether it needs a process."""
        return self.action not in ("nothing", "prepare")


@dataclass(frozen=True)
class Plan:
    """A plan, iterable over its cases. Cases are created one by one: a plan of any size takes the same memory."""

    job: JobSpec
    algorithms: tuple[PlannedAlgorithm, ...]
    store: CaseStore
    secrets: frozenset[str]  # strings that no case may show: secrets in the files and in this process's variables
    references: PlannedReferences = field(default_factory=PlannedReferences)
    studies: tuple[PlannedStudy, ...] = ()

    @property
    def searches(self) -> bool:
        """Whether further trials are needed, whose cases are not in the plan yet."""
        return any(not study.ended for study in self.studies)

    def __len__(self) -> int:
        if self.job.only is not None or self.job.limit is not None:
            return sum(1 for _ in self.cases())
        return sum(len(algorithm) * len(algorithm.seeds(self.job.seeds)) for algorithm in self.algorithms)

    def __iter__(self) -> Iterator[PlannedCase]:
        exam_damage: dict[str, str | None] = {}
        return (self._planned(case, algorithm, exam_damage) for case, algorithm in self.cases())

    def stored(self) -> Iterator[PlannedCase]:
        """Yield the cases with stored files, in the same order; all others, possibly a million, are new."""
        ids = stored_ids(self.store)
        exam_damage: dict[str, str | None] = {}
        cases = stored_cases(self.algorithms, self.job.seeds, self.store, ids)
        if self.job.only is not None or self.job.limit is not None:
            cases = ((case, algorithm) for case, algorithm in self.cases() if case.id in ids or algorithm.trial)
        return (self._planned(case, algorithm, exam_damage) for case, algorithm in cases)

    def cases(self) -> Iterator[tuple[TestCase, PlannedAlgorithm]]:
        """Yield the cases selected by `only` and `limit` without reading the disk."""
        if self.job.only is None and self.job.limit is None:
            for algorithm in self.algorithms:
                yield from ((case, algorithm) for case in algorithm.cases(self.job.seeds))
            return
        every = replace(self, job=replace(self.job, only=None, limit=None))
        ordinary = ((case, algorithm) for case, algorithm in every.cases() if case.role in ("", REPEAT_ROLE))
        fitting = ((case, algorithm) for case, algorithm in ordinary if fits(case, self.job.only or ""))
        chosen = list(islice(fitting, self.job.limit))
        yield from chosen
        needed = {id_ for case, algorithm in chosen for id_ in self.references.ids(case, algorithm).values()}
        needed -= {case.id for case, _ in chosen}
        if needed:
            yield from ((case, algorithm) for case, algorithm in every.cases() if case.id in needed)

    def _planned(self, case: TestCase, algorithm: PlannedAlgorithm, exam_damage: dict[str, str | None]) -> PlannedCase:
        """Return the case with its state. exam_damage: the damaged file of each exam, as far as one was looked for."""
        state, until = self.store.state(case.id), algorithm.until
        status = state.status
        planned = partial(PlannedCase, case, algorithm)
        if algorithm.trial and algorithm.trial.outcome:
            shown = status if status in ("finished", "failed") else "stopped"
            return planned(shown, "nothing", algorithm.trial.outcome)
        if status is not None and until is not None and self.store.is_complete_until(case.id, until):
            scored = all(self.store.has_score(case.id, key, until) for _, key in algorithm.scores)
            return planned("stopped", "nothing" if scored else "score", f"paused after round {until}")
        if state.damaged:
            damaged = tuple(f"cases/{case.id}/{name}" for name in state.damaged)
            action: Action = "score" if state.is_whole else "resume"
            return planned("unfinished", action, f"{one_line(damaged, 3)} {CHANGED_MESSAGE}", damaged)
        if status == "finished":
            return self._finished(planned, case, algorithm, state, exam_damage)
        if status == "failed":
            failure = self.store.failure(case.id)
            why = f"{failure.error}: {failure.message}" if failure else "no reason is known"
            return planned("failed", "run", f"failed last time ({why.splitlines()[0]})")
        done = len(self.store.trained_rounds(case.id)) - 1 if status == "unfinished" else 0
        if done > 0:
            return planned("unfinished", "resume", f"cut off after round {done}")
        if case.role == REPEAT_ROLE:
            return planned("new", "run", "a repetition, never run")
        predecessor = self.store.predecessor(case) if self.store.root.exists() else None
        similar = self._earlier(predecessor, algorithm) if predecessor else None
        changed = f"{CHANGED_SINCE} {similar.case_id[:8]}: {'; '.join(similar.differences)}" if similar else "never run"
        of_exam = similar is not None and similar.same_exam and status is None and not case.role
        return planned("new", "run", changed, earlier=similar if of_exam else None)

    def _finished(
        self,
        planned: Callable[..., PlannedCase],
        case: TestCase,
        algorithm: PlannedAlgorithm,
        state: CaseState,
        exam_damage: dict[str, str | None],
    ) -> PlannedCase:
        if missing := [metric.name for metric, key in algorithm.scores if key not in state.score_keys]:
            return planned("finished", "score", f"finished; {', '.join(missing)} to be computed from what is stored")
        exam = algorithm.exam_id
        if exam not in exam_damage:
            has_exams = runner_of(algorithm.spec) is None  # otherwise nothing of an exam is stored
            exam_damage[exam] = ExamStore(self.store.workspace).damaged_file(exam) if has_exams else None
        if exam_damage[exam] is not None:
            damaged = f"exams/{exam}/{exam_damage[exam]}"
            return planned("unfinished", "prepare", f"{damaged} {CHANGED_MESSAGE}", (damaged,))
        accepted = self.accepted_sources.get(case.id)
        reason = f"finished; kept, made by an earlier {one_line(accepted, 3)}" if accepted else "finished"
        return planned("finished", "nothing", reason, stored=state)

    @cached_property
    def _ids_of_other_jobs(self) -> frozenset[str]:
        """Ids of stored cases of other jobs in the workspace that are not in this one; their exam may differ."""
        stored: dict[bool, set[str]] = {True: set(), False: set()}
        for name in JobStore.names(self.job.workspace):
            with suppress(DamagedError):
                record: Mapping[str, Any] = JobStore(self.job.workspace, name).read() or {}
                stored[name == self.job.name].update(case["id"] for case in record.get("cases", ()))
        return frozenset(stored[False] - stored[True])

    def _earlier(self, predecessor: str, algorithm: PlannedAlgorithm) -> EarlierCase | None:
        """Return what has changed since a stored case of the same algorithm, hyperparameters and seed in this job."""
        before = None
        with suppress(DamagedError):
            before = self.store.identity(predecessor)
        if before is None or predecessor in self._ids_of_other_jobs:
            return None
        now = {"exam": algorithm.exam, "algorithm": algorithm.identity}
        same_exam = before["exam_id"] == algorithm.exam_id
        return EarlierCase(predecessor, tuple(identity_differences(before, now)), same_exam)

    def finished_with_other_source(self) -> dict[str, str]:
        """Return {id of an unfinished case: id of a finished one that differs only in its source}."""
        return cases_of_other_source(self.algorithms, self.cases(), self.store)

    @cached_property
    def accepted_sources(self) -> dict[str, tuple[str, ...]]:
        """Return, by id of an accepted case of an earlier source, the files that have changed since."""
        changes: dict[str, tuple[str, ...]] = {}
        for algorithm in self.algorithms:
            now: Mapping[str, str] = algorithm.identity["source"]
            for accepted in algorithm.accepted.values():
                changed = [name for name in {**now, **accepted.source} if now.get(name) != accepted.source.get(name)]
                changes[accepted.id] = min(tuple(changed), changes.get(accepted.id, tuple(changed)), key=len)
        return changes

    def earlier_cases(self) -> Iterator[tuple[TestCase, EarlierCase]]:
        """Yield cases that have not run, with the job's earlier one in the same exam."""
        stored = stored_ids(self.store)
        for case, algorithm in self.cases() if stored else ():
            if (
                case.id not in stored
                and not case.role
                and (predecessor := self.store.predecessor(case))
                and (similar := self._earlier(predecessor, algorithm))
                and similar.same_exam
            ):
                yield case, similar


def make_plan(
    job: JobSpec,
    inspector: Inspector,
    samples: Sequence[str | None] = (),
    say: Callable[[DatasetSpec, str], object] = lambda dataset, progress: None,
) -> Plan:
    """Plan `job` with what its workspace holds. Raises ConfigError, or DataError if the data can't be read.

    samples: fingerprints of each testenv's samples, if `data.check_dataset` found them. say: receives the progress of
    reading files.
    """
    if job.generation.url is not None:
        job = with_server_version(job, job.generation.url)
    algorithms: list[PlannedAlgorithm] = []
    needs: set[str] = set()
    job_store, secrets = JobStore(job.workspace, job.name), secrets_in(job)
    accepted = accepted_cases(job_store) if job_store.folder.exists() else {}
    students = [(algorithm, inspector.paradigm(algorithm)) for algorithm in job.algorithms]
    for exam, known_fingerprint in zip_longest(job.testenvs, samples):
        fingerprint = data.fingerprint(
            exam.dataset, job.workspace / "cache", known_fingerprint, partial(say, exam.dataset)
        )
        name, scores = exam.name if len(job.testenvs) > 1 else "", []
        for metric, key in scored_metrics(exam):
            header = metric_header(metric)
            needs |= set(header.needs)
            if metric.url is not None or header.level in ("score", "reported"):
                scores.append((metric, key))
        for spec, paradigm in students:
            facts = exam_identity(exam, spec, paradigm, fingerprint)
            identity = algorithm_identity(job, exam, spec, paradigm)
            planned = PlannedAlgorithm(
                *(spec, paradigm, exam, name, digest(facts), facts, identity, digest(identity), tuple(scores)),
                accepted=accepted,
            )
            if not seeds_of_case(exam.scenario):
                algorithms.append(planned)
                continue
            for seed in job.seeds:
                facts = exam_identity(with_seed(exam, seed), spec, paradigm, fingerprint)
                drawn = PerSeedExam(seed, group_id=planned.exam_id)
                algorithms.append(replace(planned, exam=facts, exam_id=digest(facts), drawn=drawn, seed=seed))
    if len(job.testenvs) > 1:
        _refuse_repeated(algorithms)
    studies = plan_studies(job, job.search, algorithms) if job.search else ()
    trials = [trial for study in studies for trial in study.planned()]
    if job.search:  # the search lists the cases of its algorithms
        algorithms = [replace(each, choices=()) if is_searched(each.spec) else each for each in algorithms]
    ranked = [*algorithms, *(trial for trial in trials if trial.is_ranked)]
    repetitions = [repetition_of(planned, k, job.seeds) for k in range(1, job.repeat) for planned in ranked]
    references = plan_references(job, ranked, inspector) if needs else PlannedReferences()
    if further := (*filter(None, repetitions), *references.algorithms):
        further = _scored_for_all(job, [*algorithms, *further], further)
    store = CaseStore(job.workspace, secrets)
    plan = Plan(job, (*algorithms, *trials, *further), store, secrets, references, studies)
    if job.only is not None:
        _refuse_unfit(plan, job.only)
    return plan


def _scored_for_all(
    job: JobSpec, planned: Iterable[PlannedAlgorithm], shared: Sequence[PlannedAlgorithm]
) -> tuple[PlannedAlgorithm, ...]:
    """Return `shared` with the scores of every testenv that shares the exam.

    A reference run is shared by exams that differ only in facts that do not affect it, and is scored for all of them.
    """
    scores: dict[str, dict[str, tuple[MetricSpec, str]]] = {}
    for each in sorted(planned, key=lambda each: job.testenvs.index(each.testenv)):
        scores.setdefault(each.exam_id, {}).update({key: (metric, key) for metric, key in each.scores})
    return tuple(replace(each, scores=tuple(scores[each.exam_id].values())) for each in shared)


def _refuse_unfit(plan: Plan, only: str) -> None:
    """Raise ConfigError if a condition of `--only` fits no case."""
    for condition in alternatives(only):
        if next(replace(plan, job=replace(plan.job, only=condition)).cases(), None) is None:
            names = one_line(list(dict.fromkeys(algorithm.name for algorithm in plan.job.algorithms)))
            message = (
                f"--only '{condition}' fits none of the job's cases. Write conditions such as 'ewc,seed=0'; its "
                f"algorithms are: {names}. `ianvs plan` lists the cases."
            )
            raise ConfigError([ValidationError(message, code="no-matching-case")])


def _refuse_repeated(algorithms: Sequence[PlannedAlgorithm]) -> None:
    """Raise ConfigError if two testenvs are the same exam, since each case is run once."""
    first: dict[tuple[str, str, str], TestEnvSpec] = {}
    for planned in algorithms:
        exam = planned.testenv
        key = (planned.exam_id, planned.identity_digest, planned.spec.name)
        if first.setdefault(key, exam) is not exam:
            other = shown_path(first[key].file)
            message = f"this is the same exam as {other}: same data, same scenario. Keep one, with the metrics of both."
            raise ConfigError([ValidationError(message, exam.place, code="duplicate-exam")])


def scored_metrics(exam: TestEnvSpec) -> list[tuple[MetricSpec, str]]:
    """Return the testenv's metrics and those that they depend on, each with the key of its values.

    BWT alone is BWT of accuracy. The key of a `url` over a score matrix includes its score.
    """
    named = list(exam.metrics)
    if not any(metric_header(metric).level in ("score", "reported") for metric in named):
        named.insert(0, MetricSpec("accuracy", dataset_columns=exam.dataset.columns_of_settings))
    for metric in exam.metrics:
        if metric.score is not None and metric.score not in {other.name for other in named}:
            named.append(MetricSpec(metric.score, place=metric.place, dataset_columns=metric.dataset_columns))
    scores = {metric.name: metric for metric in named}
    return [(each, metric_key(each, scores.get(each.score or "") if each.url else None)) for each in named]


def job_columns(job: JobSpec, inspector: Inspector) -> dict[str, tuple[MetricColumn, ...]]:
    """Return the columns of each exam, which is called "" if the job has one."""
    metrics = []  # (spec, metric, key); errors were reported before
    for exam in job.testenvs:
        scored = scored_metrics(exam)
        answers = [(spec, inspector.metric(spec), key) for spec, key in scored]
        metrics.append(tuple((spec, metric, key) for spec, metric, key in answers if isinstance(metric, Metric)))
    names = [exam.name if len(job.testenvs) > 1 else "" for exam in job.testenvs]
    return dict(zip(names, metric_columns(metrics), strict=True))


def matches(planned: PlannedCase, wanted: str) -> bool:
    """Return whether `wanted` selects a case: "all", "failed", or conditions (`fits`)."""
    if wanted in ("all", "failed"):
        return wanted in ("all", planned.state)
    return fits(planned.case, wanted, planned.state)


def start_over(plan: Plan, wanted: str) -> int:
    """Delete the stored files of the selected cases, so that they restart; returns their number.

    A search keeps its later trials, and evaluates these again.
    """
    count = 0
    trials: dict[str, set[int]] = {}
    for planned in plan:
        if planned.state != "new" and matches(planned, wanted):
            with plan.store.lock(planned.case.id):
                plan.store.reset(planned.case.id)
            count += 1
            if (trial := planned.algorithm.trial) is not None:
                trials.setdefault(trial.study, set()).add(trial.number)
    for key, numbers in trials.items():
        StudyStore(plan.job.workspace, plan.job.name).forget(key, numbers)
    return count
