"""Grid -> test cases, their identities, and what is new, finished or failed, with the reason."""

from ianvs.running.planning.cases import PlannedAlgorithm, axes, cells, grid, own_hyperparameters
from ianvs.running.planning.hyperparameters import with_hyperparameters, without_unused
from ianvs.running.planning.plan import (
    CHANGED_SINCE,
    EarlierCase,
    Plan,
    PlannedCase,
    earlier_cases,
    job_columns,
    make_plan,
    matches,
    said_of_earlier,
    scored_metrics,
    start_over,
)

__all__ = [
    "CHANGED_SINCE",
    "EarlierCase",
    "Plan",
    "PlannedAlgorithm",
    "PlannedCase",
    "axes",
    "cells",
    "earlier_cases",
    "grid",
    "job_columns",
    "make_plan",
    "matches",
    "own_hyperparameters",
    "said_of_earlier",
    "scored_metrics",
    "start_over",
    "with_hyperparameters",
    "without_unused",
]
