"""Routing of samples to edge or cloud (paradigm `jointinference`).

Computed from values stored for each sample: `route` (0 edge, 1 cloud), `latency_ms`, `uploaded_bytes`,
`downloaded_bytes`, over the samples of all test sets together, after the last round. nan if a value is missing.
"""

import numpy as np

from ianvs.exam.metrics.definition import score_metric
from ianvs.exam.metrics.metric import EvaluationRecord

NAN = float("nan")
_IANVS = "KubeEdge Ianvs, paradigm jointinference"
_EDGE, _CLOUD = 0, 1


def _mean_of(record: EvaluationRecord, name: str) -> float:
    values = record.extras.get(name)
    return float(values.mean()) if values is not None and len(values) else NAN


def _accuracy_of(record: EvaluationRecord, route: int) -> float:
    routes, truth, answers = record.extras.get("route"), record.y_true, record.y_pred
    if routes is None or not isinstance(truth, np.ndarray) or not isinstance(answers, np.ndarray):
        return NAN
    mine = routes == route
    return float((truth[mine] == answers[mine]).mean()) if mine.any() else NAN


@score_metric("edge_share", formula="|{n: route[n] = edge}| / N", source=_IANVS, pooled=True)
def edge_share(record: EvaluationRecord) -> float:
    """Share of samples that are answered at the edge."""
    routes = record.extras.get("route")
    return float((routes == _EDGE).mean()) if routes is not None and len(routes) else NAN


@score_metric("edge_accuracy", formula="accuracy over the samples n with route[n] = edge", source=_IANVS, pooled=True)
def edge_accuracy(record: EvaluationRecord) -> float:
    """Accuracy on the samples that are answered at the edge."""
    return _accuracy_of(record, _EDGE)


@score_metric("cloud_accuracy", formula="accuracy over the samples n with route[n] = cloud", source=_IANVS, pooled=True)
def cloud_accuracy(record: EvaluationRecord) -> float:
    """Accuracy on the samples that are sent to the cloud."""
    return _accuracy_of(record, _CLOUD)


@score_metric(
    "latency_ms",
    formula="mean_n latency_ms[n]: edge_ms if the edge was asked; if the cloud was, cloud_ms + rtt_ms + 8 up / (1000 "
    "up_mbps) + 8 down / (1000 down_mbps)",
    source="ianvs (the simulated link of the paradigm's options)",
    higher_is_better=False,
    pooled=True,
)
def latency_ms(record: EvaluationRecord) -> float:
    """Mean time until a sample is answered, in ms, by the simulated link."""
    return _mean_of(record, "latency_ms")


@score_metric(
    "latency_p95_ms",
    formula="the lowest latency_ms[n] that at least 95 % of the samples don't exceed",
    source="ianvs (the simulated link of the paradigm's options)",
    higher_is_better=False,
    pooled=True,
)
def latency_p95_ms(record: EvaluationRecord) -> float:
    """Time within which 95 % of the samples are answered, in ms, by the simulated link."""
    values = record.extras.get("latency_ms")
    if values is None or not len(values):
        return NAN
    return float(np.sort(values)[-(-95 * len(values) // 100) - 1])


@score_metric("uploaded_bytes", formula="mean_n uploaded_bytes[n]", source="ianvs", higher_is_better=False, pooled=True)
def uploaded_bytes(record: EvaluationRecord) -> float:
    """Mean bytes that a sample sends to the cloud; 0 of one that is answered at the edge."""
    return _mean_of(record, "uploaded_bytes")


@score_metric(
    "downloaded_bytes", formula="mean_n downloaded_bytes[n]", source="ianvs", higher_is_better=False, pooled=True
)
def downloaded_bytes(record: EvaluationRecord) -> float:
    """Mean bytes that come back from the cloud for a sample; 0 of one that is answered at the edge."""
    return _mean_of(record, "downloaded_bytes")
