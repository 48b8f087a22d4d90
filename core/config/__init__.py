"""Strict YAML -> JobSpec, with every problem of every file at once."""

from core.config.load import load_job
from core.config.resolve import resolved

__all__ = ["load_job", "resolved"]
