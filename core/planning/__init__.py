"""Grid -> test cases, their identities, and what is new, finished or failed, with the reason."""

from core.planning.cases import PlannedAlgorithm, cells
from core.planning.choose import matches, start_over
from core.planning.plan import Plan, PlannedCase, make_plan, scored_metrics

__all__ = ["Plan", "PlannedAlgorithm", "PlannedCase", "cells", "make_plan", "matches", "scored_metrics", "start_over"]
