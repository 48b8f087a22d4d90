"""Checks of keys that have no effect with the contract of a job's algorithms."""

from collections.abc import Iterator

from ianvs.base.errors import Location, ValidationError
from ianvs.config.contracts import Contract
from ianvs.config.spec import JobSpec

_OF_OUR_ROUNDS = ("budget", "linear_probe", "task_scores", "teacher_forced", "evaluation_tasks", "model_eval")
"""Keys of a testenv that act on rounds which `ianvs.running` itself runs. Without them a result is the same."""


def unused_keys(job: JobSpec, runner: Contract) -> Iterator[ValidationError]:
    """Yield keys without effect because a contract runs the cases."""
    for key, place, warning in _unused_keys(job):
        message = f"'{key}' has no effect under `contract: {runner.name}`."
        if warning:
            yield ValidationError(message, place, warning=True, code="no-effect")
        else:
            yield ValidationError(f"{message} Leave it out.", place, code="unsupported-by-contract")


def style_problem(job: JobSpec) -> ValidationError:
    """Return the error of a `rank.style` that belongs to another contract than the job's."""
    message = f"rank.style '{job.rank.style}' is for jobs under `contract: {job.rank.style}`. Leave it out."
    return ValidationError(message, Location(job.file), code="invalid-choice")


def _unused_keys(job: JobSpec) -> Iterator[tuple[str, Location | None, bool]]:
    """Yield (key, place, whether a warning is enough) of what acts on rounds, workers or replies of `ianvs.running`."""
    if job.search is not None:
        yield "search", job.search.place, False
    for algorithm in job.algorithms:
        if algorithm.python is not None:
            key = "python" if algorithm.environment is None else "environment"
            yield key, algorithm.places.get(key) or Location(algorithm.file), False
    if job.generation.url is not None:
        yield "generation", job.generation.place, True
    for exam in job.testenvs:
        if exam.prequential is not None:
            yield "prequential", exam.places.get("prequential", exam.place), False
        for key in _OF_OUR_ROUNDS:
            if getattr(exam, "gate" if key == "model_eval" else key):
                yield key, exam.places.get(key, exam.place), True
