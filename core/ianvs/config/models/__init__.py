"""The three kinds of files as pydantic models: every key, its type, its default."""

from ianvs.config.models.algorithm import AlgorithmFile
from ianvs.config.models.job import JobFile
from ianvs.config.models.testenv import TestEnvFile

__all__ = ["FILE_KINDS", "AlgorithmFile", "JobFile", "TestEnvFile"]

FILE_KINDS: dict[str, type[JobFile] | type[TestEnvFile] | type[AlgorithmFile]] = {
    "benchmarkingjob": JobFile,
    "testenv": TestEnvFile,
    "algorithm": AlgorithmFile,
}
"""The key at the top of a file, and the model of what stands below it."""
