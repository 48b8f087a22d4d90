"""Strict YAML -> JobSpec, with every problem of every file at once."""

from ianvs.config.load import load_job
from ianvs.config.spec import resolved

__all__ = ["load_job", "resolved"]
