"""ianvs examines continual-learning algorithms and ranks them so that people can trust the ranking.

import ianvs
results = ianvs.run("benchmarkingjob.yaml")
results.leaderboard_frame   # pandas
for result in results: ...  # typed, one CaseResult per case
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ianvs.api import Results, compare, export, load_results, merge, migrate, plan, prepare, run, validate

__all__ = [
    "Results",
    "compare",
    "export",
    "load_results",
    "merge",
    "migrate",
    "plan",
    "plot",
    "prepare",
    "run",
    "validate",
]


def __getattr__(name: str) -> object:
    """Load the API on first use, so that `ianvs --help` does not wait for it."""
    if name in __all__:
        from ianvs import api

        return getattr(api, name)
    replacement = "; use ianvs.compare, which takes several workspaces" if name == "history" else ""
    raise AttributeError(f"module 'ianvs' has no attribute '{name}'{replacement}")
