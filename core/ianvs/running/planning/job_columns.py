"""The columns of a job's metrics, by exam."""

from __future__ import annotations

from ianvs.config.spec import JobSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_columns import MetricColumn, metric_columns
from ianvs.running.inspector import Inspector
from ianvs.running.planning.identity import metric_keys
from ianvs.running.planning.plan import scored_metrics

__all__ = ["job_columns"]


def job_columns(job: JobSpec, inspector: Inspector) -> dict[str, tuple[MetricColumn, ...]]:
    """Of each exam, which is called "" where the job has one."""
    metrics = []  # (spec, metric, key); what is wrong with any of them was told before
    for exam in job.testenvs:
        specs = scored_metrics(exam)
        found = zip(specs, inspector.metrics(specs), metric_keys(specs), strict=True)
        metrics.append(tuple((spec, one, key) for spec, one, key in found if isinstance(one, Metric)))
    names = [exam.name if len(job.testenvs) > 1 else "" for exam in job.testenvs]
    return dict(zip(names, metric_columns(metrics), strict=True))
