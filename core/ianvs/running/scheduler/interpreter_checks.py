"""Whether the interpreters that algorithms name can be started, and are prepared."""

from collections.abc import Iterator

from ianvs.base.errors import IanvsError, Place, Problem
from ianvs.config.contracts import contract_named
from ianvs.config.spec import JobSpec
from ianvs.processes.interpreters.lock import lock_of


def interpreter_problems(job: JobSpec) -> Iterator[Problem]:
    for algorithm in job.algorithms:
        if algorithm.python is None:
            continue
        key = "environment" if algorithm.environment is not None else "python"
        place = algorithm.places.get(key) or Place(algorithm.file)
        if contract_named(algorithm.contract).runs_cases:
            message = f"'{key}' is not for `contract: {algorithm.contract}`, whose plugins live in ianvs's interpreter."
            yield Problem(f"{message} Leave it out.", place)
        else:
            try:
                lock_of(algorithm)
            except IanvsError as error:
                yield Problem(str(error), place)
