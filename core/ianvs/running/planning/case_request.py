"""The input of the process of one case."""

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
from ianvs.processes.engines.engine import Files
from ianvs.processes.interpreters.lock import lock_of
from ianvs.running.loop import Phase
from ianvs.running.planning.cases import PlannedAlgorithm
from ianvs.running.planning.identity import plugin_files_of
from ianvs.running.planning.plan import Plan
from ianvs.running.planning.sandbox_paths import exam_paths, readable_paths
from ianvs.running.planning.source_snapshot import SourceSnapshot, snapshot_contents, snapshots_of
from ianvs.store import CaseStore, CodeStore, ExamStore

PREPARE_EXAM = "ianvs.running.session.exams:prepare_exam"
RUN_CASE = "ianvs.running.session.case:run_case"
"""Name of the function that is called with a CaseRequest."""
TRAINED = "trained"
"""Result of a case that is evaluated in a sandbox after all cases were trained."""
ANSWERED = "answered"
"""Result of a case that is scored by a process that has not run its author's code."""
SCORE_CASES = "ianvs.running.session.scorer_process:serve"
"""Name of the function that is called with the folder of that process. The folder has two files:"""
SCORER_ADDRESS, SCORER_OUTPUT = "address.json", "output.txt"
"""The socket for requests, and the output for the present case."""
SCORED, UNANSWERED = "scored", "unanswered"
"""Its replies to a CaseRequest: the case is scored or has failed; it lacks predictions."""

UNWRITABLE = {"round": 0, "unwritable": True}
"""The report of a case before it exits with EXIT_STORAGE."""


@dataclass(frozen=True)
class CaseRequest:
    """A test case to be run, resumed or scored; the files on disk determine which of these.

    An exam is prepared for the first case that uses it; testenv, splitting_method and as_one identify it.
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
    apart: bool  # whether it has its own process and is scored by another; otherwise it is scored in its process
    generation: GenerationSpec
    memory_mb: float | None
    saved_mb: float
    secrets: frozenset[str]  # strings that are never shown or stored
    code: tuple[SourceSnapshot, ...]  # planned source code of the authors
    provenance: Mapping[str, object]
    working_directory: Path | None  # interpreter of plugins, if their contract names one
    started_in: Path  # the folder that ianvs was started in
    phases: tuple[Phase, ...] = ("all",)  # what to do now; not "all" for a sandboxed case
    own_code: tuple[
        SourceSnapshot, ...
    ] = ()  # the part of `code` that belongs to the algorithm; for sandboxes, like the following fields
    readable: tuple[Path, ...] = ()  # files and folders that its hyperparameters name
    hidden: tuple[Path, ...] = ()  # files and folders that the exam consists of
    models_mb: float | None = None  # disk space for all models that await evaluation; None: the free space
    cases_kept: int = 1  # number of cases that keep the models of all rounds at a time
    until: int | None = None  # the round after which it pauses and is scored; None: the last one

    def exam(self, progress: Callable[[Any], None] | None = None) -> Exam:
        """Return the exam of the case with its data. Raises ConfigError or DataError."""
        cache, facts = self.workspace / "cache", self.identity.get("exam")
        fingerprint = str(facts["dataset"]) if isinstance(facts, Mapping) and "dataset" in facts else None
        split = self.splitting_method
        return open_exam(self.testenv, cache, split, as_one=self.as_one, progress=progress, fingerprint=fingerprint)

    def planned_code(self) -> AbstractContextManager[None]:
        """Context manager: imports of authors' files get the planned code. Raises DamagedError."""
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
    """Return the input of the process of `case`, which belongs to `algorithm`. apart: whether it has its own process.

    code: as stored by `store_sources`.
    """
    job = plan.job
    urls = {url for _, (url, *_) in plugin_files_of(job, algorithm.spec)}
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
        train_ratio=algorithm.identity["train_ratio"],
        scores=algorithm.scores,
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


def files_of(request: CaseRequest) -> Files:
    """Return the files that running, resuming or scoring the case reads and writes."""
    workspace, case = request.workspace, request.case.id
    store, code = CaseStore(workspace), (CodeStore(workspace).folder(snapshot.key) for snapshot in request.code)
    return Files(
        root=workspace,
        reads=(ExamStore(workspace).folder(request.exam_id), *code),
        writes=(store.folder(case),),
        notes=(store.root / ".names",),
        lock=Path(store.lock(case).lock_file),
    )
