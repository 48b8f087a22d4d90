"""Specific metrics, each with its source. ianvs finds them by the entry points `ianvs.metrics` in pyproject.toml."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import all metrics only where all are needed."""
    if name in ("METRICS", "defined_in"):
        from ianvs.testenv.metrics import all_metrics

        return getattr(all_metrics, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
