"""Metrics of a stream whose samples are answered before their labels are told: online accuracy, gain over a stateless
reference, and costs.

A mean of nothing is nan. s are the scores of the answers in stream order, z those of the stateless reference.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import mean, stream_metric
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.stream_record import StreamRecord, running

_GAIN = "CL-Bench (arXiv 2606.05661), metrics"
_OURS = "ours"
_FADING = 0.99

Numbers = NDArray[np.float64]


def windowed(scores: Numbers, window: int) -> Numbers:
    """Return (N,) means of the last `window` scores, of fewer at the beginning."""
    sums = np.concatenate([[0.0], np.cumsum(scores)])
    ends = np.arange(1, len(scores) + 1)
    starts = np.maximum(0, ends - window)
    return np.asarray((sums[ends] - sums[starts]) / np.maximum(1, ends - starts))


def fading(scores: Numbers, alpha: float) -> Numbers:
    """Return (N,) weighted means in which each score has `alpha` times the weight of the next."""
    averages, total, weight = np.empty(len(scores)), 0.0, 0.0
    for i, score in enumerate(scores.tolist()):
        total, weight = score + alpha * total, 1.0 + alpha * weight
        averages[i] = total / weight
    return averages


@stream_metric("online_accuracy", formula="(1/N) sum_i s_i", source="Cai et al. 2021 (CLOC, arXiv 2108.09020)")
def online_accuracy(record: StreamRecord) -> float:
    """Mean score of the answers that were given before their labels were told; not to be ranked by alone."""
    return mean(record.scores)


@stream_metric(
    "online_windowed", formula="mean of the last `window` s", source="Gama, Sebastiao & Rodrigues 2013, section 3"
)
def online_windowed(record: StreamRecord) -> float:
    """Mean score of the last answers of the stream."""
    return float(windowed(record.scores, record.window)[-1]) if len(record.scores) else float("nan")


@stream_metric(
    "online_fading",
    formula="sum_k a^(N-k) s_k / sum_k a^(N-k), a = .99",
    source="Gama, Sebastiao & Rodrigues 2013, section 3",
)
def online_fading(record: StreamRecord) -> float:
    """Mean score in which later answers count more."""
    return float(fading(record.scores, _FADING)[-1]) if len(record.scores) else float("nan")


@stream_metric(
    "near_future_accuracy",
    formula="mean over probes after chunk t of the scores of a copy on chunk t + 1 + S",
    source="Hammoud et al. 2023 (arXiv 2305.09275), equation 2",
)
def near_future_accuracy(record: StreamRecord) -> float:
    """Mean score of copies on what comes S chunks later; S stands behind an @, else it is the greatest."""
    return mean(record.near[max(record.near)]) if record.near else float("nan")


def _at_shift(metric: Metric, shift: int) -> Metric:
    """Return `near_future_accuracy` with one shift."""

    def function(record: StreamRecord) -> float:
        return mean(record.near[shift]) if shift in record.near else float("nan")

    return replace(metric, name=f"{metric.name}@{shift}", function=function)


near_future_accuracy = replace(near_future_accuracy, at_shift=_at_shift)


@stream_metric(
    "online_over_blind",
    formula="online_accuracy - blind_accuracy",
    source="Hammoud et al. 2023 (arXiv 2305.09275), section 3",
)
def online_over_blind(record: StreamRecord) -> float:
    """How much better the answers are than those of whoever sees no question."""
    return mean(record.scores) - record.blind


@stream_metric("gain", formula="(1/N) sum_i (s_i - z_i)", source=_GAIN, needs=("stateless",))
def gain(record: StreamRecord) -> float:
    """Mean score less that of the same system reset before each question."""
    return mean(record.gains)


@stream_metric("gain_norm", formula="(mean s - mean z) / (r_max - mean z)", source=_GAIN, needs=("stateless",))
def gain_norm(record: StreamRecord) -> float:
    """The gain as a share of what there was to gain."""
    room = record.r_max - mean(record.stateless if record.stateless is not None else ())
    return mean(record.gains) / room if room > 0 else float("nan")


@stream_metric(
    "gain_area", formula="(1/N) sum_i g_i, g_i = (1/i) sum_{k<=i} (s_k - z_k)", source=_OURS, needs=("stateless",)
)
def gain_area(record: StreamRecord) -> float:
    """Mean of the running gain: what is gained early counts more."""
    return mean(running(record.gains))


@stream_metric(
    "forward_gain",
    formula="topics but the first: mean of s - z over the first n episodes of the first visit; mean over topics",
    source=_OURS,
    needs=("stateless",),
)
def forward_gain(record: StreamRecord) -> float:
    """What earlier topics give to the first questions of a new one."""
    return mean(_starts(record, later=False))


@stream_metric(
    "return_gain",
    formula="mean of s - z over the first n episodes of every later visit, mean over visits",
    source=_OURS,
    needs=("stateless",),
)
def return_gain(record: StreamRecord) -> float:
    """What is left of a topic when it comes back."""
    return mean(_starts(record, later=True))


def _starts(record: StreamRecord, *, later: bool) -> list[float]:
    """Return mean gains at the beginnings of visits to topics.

    later: True: the later visits of each topic; False: the first visit of each topic but the first topic.
    """
    seen, means = set[int](), []
    for topic, first, end in record.visits if len(record.gains) else ():
        if (topic in seen) == later and (later or first):
            means.append(mean(record.gains[first : min(first + record.start, end)]))
        seen.add(topic)
    return means


@stream_metric(
    "retained",
    formula="mean s over episodes whose fact was told last in an earlier visit, with the answer that it still has",
    source=_OURS,
)
def retained(record: StreamRecord) -> float:
    """How well facts that did not change are known when their topic comes back."""
    return float("nan") if record.revealed_facts is None else mean(record.scores[record.revealed_facts.retained])


@stream_metric(
    "updated",
    formula="mean s over episodes whose fact was told with another answer before, and last with its own",
    source=_OURS,
)
def updated(record: StreamRecord) -> float:
    """How well facts that changed are known once the change was told."""
    return float("nan") if record.revealed_facts is None else mean(record.scores[record.revealed_facts.updated])


@stream_metric(
    "stale_rate",
    formula="share of the episodes of facts that had another answer before which are answered by such a one",
    source=_OURS,
    higher_is_better=False,
)
def stale_rate(record: StreamRecord) -> float:
    """How often an answer that was right once is given for the one that is right now."""
    if record.revealed_facts is None:
        return float("nan")
    return mean(record.revealed_facts.stale[record.revealed_facts.changed].astype(np.float64))


@stream_metric(
    "stability_gain",
    formula="mean of the last model's scores on the whole stream - mean z",
    source="AgentCL (arXiv 2606.02461), from summaries alone",
    needs=("stateless",),
)
def stability_gain(record: StreamRecord) -> float:
    """What the last model answers to the whole stream, less the stateless."""
    if record.second is None or record.stateless is None:
        return float("nan")
    return mean(record.second) - mean(record.stateless)


@stream_metric(
    "generalisation_gain",
    formula="mean_j R[T][j] - mean_j R[0][j]",
    source="AgentCL (arXiv 2606.02461), from summaries alone",
)
def generalisation_gain(record: StreamRecord) -> float:
    """How much better held-out questions are answered after the stream than before it."""
    return float("nan") if record.held_out is None else mean(record.held_out)


def _per_right(total: float | None, record: StreamRecord) -> float:
    right = float(record.scores.sum())
    return total / right if total is not None and right > 0 else float("nan")


@stream_metric("stream_seconds", formula="seconds of answering + of learning", source=_OURS, higher_is_better=False)
def stream_seconds(record: StreamRecord) -> float:
    """Time that the stream took, by the keeper's clock."""
    return record.answer_seconds + record.feedback_seconds


@stream_metric("stream_cpu_seconds", formula="processor seconds of the stream", source=_OURS, higher_is_better=False)
def stream_cpu_seconds(record: StreamRecord) -> float:
    """Processor time that the stream took."""
    return record.cpu_seconds


@stream_metric("seconds_per_right", formula="stream_seconds / sum s", source=_OURS, higher_is_better=False)
def seconds_per_right(record: StreamRecord) -> float:
    """Time for each right answer."""
    return _per_right(record.answer_seconds + record.feedback_seconds, record)


@stream_metric("tokens", formula="sum of the tokens that the author counts", source=_OURS, higher_is_better=False)
def tokens(record: StreamRecord) -> float:
    """Tokens of the stream: the author's own word."""
    return float("nan") if record.tokens is None else record.tokens


@stream_metric(
    "calls", formula="sum of the calls of a model that the author counts", source=_OURS, higher_is_better=False
)
def calls(record: StreamRecord) -> float:
    """Calls of a model in the stream: the author's own word."""
    return float("nan") if record.calls is None else record.calls


@stream_metric("tokens_per_right", formula="tokens / sum s", source=_OURS, higher_is_better=False)
def tokens_per_right(record: StreamRecord) -> float:
    """Tokens for each right answer."""
    return _per_right(record.tokens, record)


@stream_metric("calls_per_right", formula="calls / sum s", source=_OURS, higher_is_better=False)
def calls_per_right(record: StreamRecord) -> float:
    """Calls for each right answer."""
    return _per_right(record.calls, record)


@stream_metric("gain_per_1000_tokens", formula="1000 sum_i (s_i - z_i) / tokens", source=_OURS, needs=("stateless",))
def gain_per_1000_tokens(record: StreamRecord) -> float:
    """What a thousand tokens gain."""
    if not record.tokens or not len(record.gains) or not record.scores.any():
        return float("nan")
    return 1000 * float(record.gains.sum()) / record.tokens
