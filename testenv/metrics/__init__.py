"""Specific metrics, each with its source. ianvs finds them by the entry points `ianvs.metrics` in pyproject.toml."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return METRICS by its former place, which installed entry points of an earlier version name."""
    if name == "METRICS":
        from ianvs.testenv.metrics.all_metrics import METRICS

        return METRICS
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
