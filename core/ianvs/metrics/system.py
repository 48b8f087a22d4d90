"""What the runner measures: time, memory, size. Definitions only; these metrics have no function.

MB is 10^6 bytes, seconds are wall-clock. What could not be measured is null.
"""

from __future__ import annotations

from ianvs.metrics.metric import Metric

__all__ = ["SYSTEM"]


def _measured(name: str, summary: str, formula: str, higher_is_better: bool = False, source: str = "ianvs") -> Metric:
    return Metric(name, "system", summary, higher_is_better, source, formula)


SYSTEM = (
    _measured("train_seconds", "Time spent in train().", "sum of train_seconds over rounds"),
    _measured("eval_seconds", "Time spent in predict() on test sets.", "sum of eval_seconds over rounds and row 0"),
    _measured(
        "samples_per_second",
        "Training samples handed out per second of train(); several epochs over them count once.",
        "sum of train_samples / sum of train_seconds",
        higher_is_better=True,
    ),
    _measured("peak_memory_mb", "Highest resident size of the case's process on the host, in MB.", "max over rounds"),
    _measured("peak_gpu_memory_mb", "Highest memory that was allocated on the accelerator, in MB.", "max over rounds"),
    _measured("model_size_mb", "What the plugin's save() wrote after the last round, in MB.", "bytes / 10^6"),
    _measured(
        "memory_samples", "Old samples that the plugin keeps for replay, at most.", "max over rounds of len(memory)"
    ),
    _measured(
        "memory_mb", "Size of the plugin's store of old samples, in MB.", "max over rounds of memory.nbytes / 10^6"
    ),
    _measured(
        "samples_transfer_ratio",
        "Share of inferred samples that were sent on for training (Ianvs's formula: n of n gives n/(n+1), not 1).",
        "transferred / (inferred + 1)",
        source="KubeEdge Ianvs, core/testcasecontroller/metrics/metrics.py",
    ),
)
