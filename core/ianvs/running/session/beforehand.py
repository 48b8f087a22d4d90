"""What every case looks up, looked up once in the process that cases are forked from."""

from __future__ import annotations

import contextlib
import importlib

from ianvs.base.entry_points import entries, is_ours
from ianvs.exam.metrics.registry import GROUP as METRICS
from ianvs.exam.scenarios.scenario_catalogue import find_scenario

__all__ = ["warm_up"]


def warm_up() -> None:
    """Import our scenarios and metrics. Those of others are left to the cases that ask for them: they may start
    threads, which no fork survives."""
    find_scenario("")
    for point in entries(METRICS):
        if is_ours(point):
            with contextlib.suppress(Exception):  # a case that needs it fails with the real error
                importlib.import_module(point.module)
    importlib.import_module("numpy.ma")  # by np.unique, when it is first called
