"""What the process of one case needs to know."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ianvs.base.types import TestCase
from ianvs.config.spec import AlgorithmSpec, GenerationSpec, MetricSpec, TestEnvSpec
from ianvs.exam.scenarios import Exam, open_exam
from ianvs.exam.scenarios.per_seed_exam import with_seed
from ianvs.plugins.authors_files import imports_from
from ianvs.processes.interpreters.lock import lock_of
from ianvs.running.loop import Phase
from ianvs.running.planning.cases import PlannedAlgorithm
from ianvs.running.planning.identity import plugin_files_of, train_ratio
from ianvs.running.planning.plan import Plan
from ianvs.running.planning.sandbox_paths import exam_paths, readable_paths
from ianvs.running.planning.source_snapshot import SourceSnapshot, snapshot_contents, snapshots_of

PREPARE_EXAM = "ianvs.running.session.exams:prepare_exam"
RUN_CASE = "ianvs.running.session.case:run_case"
"""What is called with a CaseRequest."""
TRAINED = "trained"
"""What a case returns that is to be evaluated when all cases are trained, in a sandbox."""
ANSWERED = "answered"
"""What a case returns that is to be scored by a process that has not run its author's code."""
SCORE_CASES = "ianvs.running.session.scorer_process:serve"
"""What is called with the folder of that process. It has two files:"""
SCORER_ADDRESS, SCORER_OUTPUT = "address.json", "output.txt"
"""Where the process takes requests, and what it has printed for the present case."""
SCORED, UNANSWERED = "scored", "unanswered"
"""Its replies to a CaseRequest: that the case is scored, or has failed, and that it lacks answers."""

UNWRITABLE = {"round": 0, "unwritable": True}
"""What a case reports before it ends with EXIT_STORAGE."""


@dataclass(frozen=True)
class CaseRequest:
    """A test case to be run, resumed or scored; which of these is found out on disk.

    An exam is prepared for the first case that takes it: testenv, splitting_method and as_one say which it is.
    """

    case: TestCase
    algorithm: AlgorithmSpec
    testenv: TestEnvSpec
    exam_id: str
    splitting_method: str
    as_one: bool
    workspace: Path
    job: str  # its name
    identity: Mapping[str, object]
    train_ratio: float
    scores: tuple[tuple[MetricSpec, str], ...]  # (metric, key under which its values are stored)
    threads: int
    device: str  # "auto", "cpu", "cuda"
    apart: bool  # whether it has a process of its own, and is scored by another: else it is scored where it has run
    generation: GenerationSpec
    memory_mb: float | None
    saved_mb: float
    secrets: frozenset[str]  # texts that are shown and stored nowhere
    code: tuple[SourceSnapshot, ...]  # of the authors, as it was planned
    provenance: Mapping[str, object]
    working_directory: Path | None  # of plugins, where their contract names one
    started_in: Path  # the folder that ianvs was started in
    phases: tuple[Phase, ...] = ("all",)  # what is to be done now; of a sandboxed case not "all"
    own_code: tuple[
        SourceSnapshot, ...
    ] = ()  # of `code`, that of the algorithm's own files; for sandboxes, as what follows
    readable: tuple[Path, ...] = ()  # files and folders that its hyperparameters name
    hidden: tuple[Path, ...] = ()  # files and folders that the exam consists of
    models_mb: float | None = None  # all models that are kept until they are evaluated; None: what the disk has free
    cases_kept: int = 1  # how many cases keep the models of all rounds at a time
    until: int | None = None  # the round after which it pauses and is scored; None: it goes to the end

    def exam(self, progress: Callable[[Any], None] | None = None) -> Exam:
        """Return the exam that the case takes, with its data. Raises ConfigError or DataError."""
        cache, facts = self.workspace / "cache", self.identity.get("exam")
        fingerprint = str(facts["dataset"]) if isinstance(facts, Mapping) and "dataset" in facts else None
        split = self.splitting_method
        return open_exam(self.testenv, cache, split, as_one=self.as_one, progress=progress, fingerprint=fingerprint)

    def planned_code(self) -> AbstractContextManager[None]:
        """Inside, authors' files are what they were when the case was planned. Raises DamagedError."""
        return imports_from(snapshot_contents(self.workspace, self.code))


def case_request(
    plan: Plan,
    case: TestCase,
    algorithm: PlannedAlgorithm,
    provenance: Mapping[str, object],
    code: tuple[SourceSnapshot, ...],
    *,
    apart: bool = False,
) -> CaseRequest:
    """What the process of `case`, one of `algorithm`'s in `plan`, needs to know. apart: it is one of its own.

    code: as stored by `store_sources`.
    """
    job = plan.job
    urls = {url for _, url, _, _ in plugin_files_of(algorithm.spec)}
    source = {name: bytes_ for entry in code if str(entry.file) in urls for name, bytes_ in entry.digests}
    python = {} if algorithm.spec.python is None else {"interpreter": asdict(lock_of(algorithm.spec))}
    sandboxes = {"sandboxes": {"examine": job.examine}} if job.sandboxed else {}
    return CaseRequest(
        case=case,
        algorithm=algorithm.spec,
        testenv=algorithm.testenv if algorithm.drawn is None else with_seed(algorithm.testenv, algorithm.drawn.seed),
        exam_id=algorithm.exam_id,
        splitting_method=algorithm.exam["splitting_method"],
        as_one=algorithm.paradigm.as_one,
        workspace=job.workspace,
        job=job.name,
        identity=algorithm.identity_of(case),
        train_ratio=train_ratio(algorithm.testenv, algorithm.spec),
        scores=plan.scores_of(algorithm),
        threads=job.threads,
        device=job.device,
        apart=apart,
        generation=job.generation,
        memory_mb=job.limits.memory_mb,
        saved_mb=job.limits.saved_mb,
        secrets=plan.secrets,
        code=code,
        provenance={**provenance, "source": source, **python, **sandboxes},
        working_directory=job.working_directory,
        started_in=Path.cwd(),
        phases=("train", "evaluate") if job.sandboxed else ("all",),
        own_code=snapshots_of(job, algorithm.spec, code) if job.sandboxed else (),
        readable=readable_paths(job, algorithm.spec) if job.sandboxed else (),
        hidden=exam_paths(job) if job.sandboxed else (),
        models_mb=job.limits.models_mb,
        cases_kept=len(plan) if job.sandboxed and job.examine == "after all cases" else 1,
        until=algorithm.until,
    )
