"""The three kinds of files: every key, its type, its default."""

from ianvs.config.models.algorithm import AlgorithmSpec
from ianvs.config.models.job import JobFile
from ianvs.config.models.testenv import TestEnvSpec

__all__ = ["FILE_KINDS", "AlgorithmSpec", "JobFile", "TestEnvSpec"]

FILE_KINDS: dict[str, type[JobFile] | type[TestEnvSpec] | type[AlgorithmSpec]] = {
    "benchmarkingjob": JobFile,
    "testenv": TestEnvSpec,
    "algorithm": AlgorithmSpec,
}
"""The key at the top of a file, and the model of what stands below it."""
