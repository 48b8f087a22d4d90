"""Checks that the interpreters of algorithms can be started and are prepared."""

from collections.abc import Iterator

from ianvs.base.errors import IanvsError, Location, ValidationError
from ianvs.config.contracts import contract_named
from ianvs.processes.interpreters.lock import Lock, lock_of
from ianvs.running.scheduler.checks import Preflight


def interpreter_problems(preflight: Preflight) -> Iterator[ValidationError]:
    """Start each interpreter and report its versions."""
    users: dict[Lock, list[str]] = {}
    for algorithm in preflight.job.algorithms:
        key = "environment" if algorithm.environment is not None else "python"
        contract, message = contract_named(algorithm.contract), ""
        if contract.apart and algorithm.python is None:
            message = (
                f"plugins under `contract: {contract.name}` live in an interpreter of their own: name it by `python`, "
                "or have it made by `environment`."
            )
        if algorithm.python is not None:
            try:
                lock = lock_of(algorithm)
                users.setdefault(lock, []).append(algorithm.name)
                if not any(package.startswith("numpy==") for package in lock.packages):
                    message = f"the interpreter of {algorithm.name} has no numpy, in which data are handed over. "
                    message += "Add numpy to its list." if key == "environment" else "Install it there."
            except IanvsError as error:
                message = str(error)
        if message:
            yield ValidationError(
                message, algorithm.places.get(key) or Location(algorithm.file), code="invalid-interpreter"
            )
    for lock, (first, *others) in users.items():
        more = f" and {len(others)} more" if others else ""
        preflight.listener.reading_progress(f"the interpreter of {first}{more}", str(lock))
