"""Reads a JobSpec from strict YAML, reporting all errors of all files at once."""

from ianvs.config.load import load_job
from ianvs.config.spec import resolved

__all__ = ["load_job", "resolved"]
