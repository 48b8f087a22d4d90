"""Checks for settings that sandboxed cases do not support, and whether this machine can create a sandbox."""

from __future__ import annotations

from collections.abc import Iterator

from ianvs.base.errors import Location, ValidationError
from ianvs.config.contracts import runner_of
from ianvs.config.spec import JobSpec
from ianvs.exam.paradigms import PARADIGMS
from ianvs.processes.sandbox import missing_sandbox
from ianvs.running.planning.named_files import named_servers
from ianvs.running.planning.sandbox_paths import readable_problems
from ianvs.running.scheduler.create_engine import engine_class

STREAMS = "`sealing: strict` has whole rounds, and this exam is a stream"


def sandbox_problems(job: JobSpec) -> Iterator[ValidationError]:
    """Check a job with sandboxes. Other machines check theirs when a case starts there."""
    place = job.places.get("sealing", job.place)
    if not engine_class(job).elsewhere and (missing := missing_sandbox()):
        yield ValidationError(f"`sealing: strict`: {missing}", place, code="missing-package")
    for message, where in _unsupported(job):
        yield ValidationError(f"{message}. Take one of them out.", where or place, code="conflicting-keys")
    yield from readable_problems(job)


def _unsupported(job: JobSpec) -> Iterator[tuple[str, Location | None]]:
    """Yield (unsupported setting, its location)."""
    if (runner := runner_of(job.algorithms[0])) is not None:
        yield f"`sealing: strict` is for native plugins, and the job is under `contract: {runner.name}`", None
        return
    if job.generation.engine == "server":
        yield "a sandbox of `sealing: strict` has no network, and `generation` asks a server", job.generation.place
    if job.search is not None:
        yield (
            "`search` chooses by results of the exam, and `sealing: strict` trains every case before",
            job.search.place,
        )
    for exam in job.testenvs:
        if exam.prequential is not None:
            where = exam.places.get("prequential", exam.place)
            yield f"{STREAMS} that tells labels after each answer (`prequential`)", where
    for algorithm in job.algorithms:
        for address, where in named_servers(algorithm).items():
            yield f"a sandbox of `sealing: strict` has no network, and {algorithm.name} names '{address}'", where
        if algorithm.python is not None:
            key = "python" if algorithm.environment is None else "environment"
            where = algorithm.places.get(key) or Location(algorithm.file)
            yield f"`sealing: strict` has the interpreter of ianvs, and {algorithm.name} names another (`{key}`)", where
        paradigm = algorithm.paradigm
        if paradigm.url is not None or paradigm.name not in PARADIGMS:
            yield (
                f"`sealing: strict` has the paradigms of ianvs, and {algorithm.name} has its own ({paradigm.name})",
                paradigm.place,
            )
