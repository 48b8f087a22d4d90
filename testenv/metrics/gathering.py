"""Gathers the metrics of a module."""

from collections.abc import Mapping
from typing import TypeVar

from ianvs.exam.metrics.metric import Metric

M = TypeVar("M", bound=Metric)


def defined_in(module: Mapping[str, object], kind: type[M]) -> tuple[M, ...]:
    """The metrics that stand in a module's namespace, in the order of their definition."""
    return tuple(value for value in module.values() if isinstance(value, kind))
