"""The three kinds of files as pydantic models: every key, its type, its default."""

from ianvs.config.models.algorithm import Algorithm
from ianvs.config.models.job import Job
from ianvs.config.models.testenv import TestEnv

__all__ = ["FILE_KINDS", "Algorithm", "Job", "TestEnv"]

FILE_KINDS: dict[str, type[Job] | type[TestEnv] | type[Algorithm]] = {
    "benchmarkingjob": Job,
    "testenv": TestEnv,
    "algorithm": Algorithm,
}
"""The key at the top of a file, and the model of what stands below it."""
