"""Checks of the contract of a job's algorithms, and of keys that have no effect with it."""

from collections.abc import Iterator

from ianvs.base.errors import Location, ValidationError
from ianvs.config.contracts import Contract, runner_of
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import JobSpec
from ianvs.running.scheduler.checks import Check, Preflight

_OF_OUR_ROUNDS = ("budget", "linear_probe", "task_scores", "teacher_forced", "evaluation_tasks", "model_eval")
"""Keys of a testenv that act on rounds which `ianvs.running` itself runs. Without them a result is the same."""


def setting_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Yield the contract's errors in settings, and keys without effect if the contract runs the cases."""
    job = preflight.job
    if (runner := runner_of(job.algorithms[0])) is not None:
        yield from runner.setting_problems(job)
        for key, place, warning in _unused_keys(job):
            message = f"'{key}' has no effect under `contract: {runner.name}`."
            if warning:
                yield ValidationError(message, place, warning=True, code="no-effect")
            else:
                yield ValidationError(f"{message} Leave it out.", place, code="unsupported-by-contract")
    elif job.rank.style not in (NATIVE, "proposal"):
        message = f"rank.style '{job.rank.style}' is for jobs under `contract: {job.rank.style}`. Leave it out."
        yield ValidationError(message, Location(job.file), code="invalid-choice")


def code_checks(runner: Contract) -> tuple[Check, ...]:
    """Return the contract's checks of plugins, which replace those of `ianvs.running`."""
    return (
        Check(lambda p: runner.code_problems(p.job)),
        Check(lambda p: runner.import_problems(p.job), needs_error_free=True),  # runs authors' code
    )


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
