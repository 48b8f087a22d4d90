"""Models of the three kinds of files: all keys with their types and defaults."""

from ianvs.config.models.algorithm import AlgorithmSpec
from ianvs.config.models.job import JobFile
from ianvs.config.models.testenv import TestEnvSpec

__all__ = ["FILE_KINDS", "AlgorithmSpec", "JobFile", "TestEnvSpec"]

FILE_KINDS: dict[str, type[JobFile] | type[TestEnvSpec] | type[AlgorithmSpec]] = {
    "benchmarkingjob": JobFile,
    "testenv": TestEnvSpec,
    "algorithm": AlgorithmSpec,
}
"""The top-level key of a file, and the model of its content."""
