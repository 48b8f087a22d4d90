"""The columns of a job's metrics, by exam."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ianvs.config.spec import JobSpec, MetricSpec
from ianvs.metrics.metric import Metric
from ianvs.metrics.metric_columns import MetricColumn, metric_columns
from ianvs.planning.identity import metric_key
from ianvs.planning.info import metric_info
from ianvs.planning.plan import scored_metrics

__all__ = ["job_columns"]


def job_columns(job: JobSpec) -> dict[str, tuple[MetricColumn, ...]]:
    """Of each exam, which is called "" where the job has one."""
    names = [exam.name if len(job.testenvs) > 1 else "" for exam in job.testenvs]
    asked = metric_columns(_metrics_of(scored_metrics(exam), job.workspace / "cache") for exam in job.testenvs)
    return dict(zip(names, asked, strict=True))


def _metrics_of(specs: Sequence[MetricSpec], cache: Path) -> tuple[tuple[MetricSpec, Metric, str], ...]:
    """(spec, metric, key); what is wrong with any of them was told before."""
    found = zip(specs, metric_info(specs, cache), strict=True)
    return tuple((spec, metric, metric_key(spec)) for spec, metric in found if isinstance(metric, Metric))
