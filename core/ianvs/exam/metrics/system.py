"""Measurements of the runner: time, memory, size. Each definition has the only function that computes it.

MB is 10^6 bytes. A value that could not be measured is null. A leaderboard shows some of these by default
(ianvs.results.report.columns); a testenv may list any. The number is the same either way.
"""

from collections.abc import Callable, Iterable, Sequence

from ianvs.base.types import Measure, RoundResult
from ianvs.exam.metrics.metric import Metric

Rounds = Sequence[RoundResult]  # the rounds of a case, row 0 first
_MEGA = 1e6


def system_value(name: str, rounds: Rounds) -> float | None:
    """Return the system metric `name` of a case with these rounds; None if it was not measured."""
    return _MEASURES[name](rounds)


def paradigm_value(name: str, measure: Measure, rounds: Rounds) -> float | None:
    """Return what the paradigm of a case measured under `name`; None if it never did."""
    values = [round_.measures[name] for round_ in rounds if name in round_.measures]
    if not values:
        return None
    return values[-1] if measure.reduce == "last" else max(values) if measure.reduce == "max" else sum(values)


def _total(values: Iterable[float | None]) -> float | None:
    """Return the sum; None if a value is missing, since the sum of the others would be too small."""
    numbers = list(values)
    return None if not numbers or None in numbers else float(sum(value for value in numbers if value is not None))


def _highest(values: Iterable[int | None], unit: float = 1.0) -> float | None:
    return max((value / unit for value in values if value is not None), default=None)


def _train_seconds(rounds: Rounds) -> float | None:
    return _total(round_.train_seconds for round_ in rounds)


def _all_parts(round_: RoundResult) -> tuple[float | None, ...]:
    train_and_eval = round_.train_seconds, round_.eval_seconds
    return (round_.build_seconds, *train_and_eval, round_.save_seconds, round_.measure_seconds)


def _samples_per_second(rounds: Rounds) -> float | None:
    seconds = _train_seconds(rounds)
    return sum(round_.train_samples for round_ in rounds) / seconds if seconds else None


def _inference_ms(rounds: Rounds) -> float | None:
    trained = [round_ for round_ in rounds if round_.index]
    samples = sum(round_.test_samples for round_ in trained)
    # Its time includes predictions for training samples.
    streamed = any(round_.revealed_samples is not None for round_ in trained)
    return 1000 * sum(round_.eval_seconds for round_ in trained) / samples if samples and not streamed else None


def _last(values: Iterable[int | None]) -> float | None:
    """Return the last measured value."""
    present = [value for value in values if value is not None]
    return float(present[-1]) if present else None


def _samples(kind: str, rounds: Rounds) -> float:
    """Return the number of "transferred" or "inferred" samples; all served ones if the paradigm did not measure it."""
    return float(sum(round_.measures.get(f"{kind}_samples", round_.train_samples) for round_ in rounds))


def _transfer_share(rounds: Rounds) -> float | None:
    inferred = _samples("inferred", rounds)
    return _samples("transferred", rounds) / inferred if inferred else None


_DEFINED: tuple[tuple[str, str, str, Callable[[Rounds], float | None]], ...] = (
    (
        "train_seconds",
        "Wall-clock time in train().",
        "sum of train_seconds over rounds",
        _train_seconds,
    ),
    (
        "eval_seconds",
        "Wall-clock time in predict() on test sets.",
        "sum of eval_seconds over rounds and row 0",
        lambda rounds: _total(round_.eval_seconds for round_ in rounds),
    ),
    (
        "train_cpu_seconds",
        "Processor time in train(), user and system, of the case's process, its threads and its child processes.",
        "sum of train_cpu_seconds over rounds",
        lambda rounds: _total(round_.train_cpu_seconds for round_ in rounds if round_.index),
    ),
    (
        "eval_cpu_seconds",
        "Processor time in predict() on test sets, user and system, of the case's process, its threads and its child "
        "processes.",
        "sum of eval_cpu_seconds over rounds and row 0",
        lambda rounds: _total(round_.eval_cpu_seconds for round_ in rounds),
    ),
    (
        "build_seconds",
        "Wall-clock time to make the author's objects, before the first round.",
        "build_seconds of row 0",
        lambda rounds: _total(round_.build_seconds for round_ in rounds),
    ),
    (
        "save_seconds",
        "Wall-clock time in save().",
        "sum of save_seconds over rounds and row 0",
        lambda rounds: _total(round_.save_seconds for round_ in rounds),
    ),
    (
        "measure_seconds",
        "Wall-clock time of a case that is none of its method's: storing, digests, questions that only check.",
        "sum of measure_seconds over rounds and row 0",
        lambda rounds: _total(round_.measure_seconds for round_ in rounds),
    ),
    (
        "case_seconds",
        "Wall-clock time of a case from making its objects to its last round, without scoring.",
        "build_seconds + train_seconds + save_seconds + eval_seconds + measure_seconds",
        lambda rounds: _total(seconds for round_ in rounds for seconds in _all_parts(round_)),
    ),
    (
        "samples_per_second",
        "Training samples served per second of train(); several epochs over them count once.",
        "sum of train_samples / sum of train_seconds",
        _samples_per_second,
    ),
    (
        "peak_memory_mb",
        "Most memory that the case's processes allocated, from building the plugin on, in MB (10^6 bytes).",
        "max over rounds",
        lambda rounds: _highest((round_.peak_memory_bytes for round_ in rounds), _MEGA),
    ),
    (
        "peak_gpu_memory_mb",
        "Highest memory that was allocated on the accelerator, in MB (10^6 bytes).",
        "max over rounds",
        lambda rounds: _highest((round_.peak_gpu_bytes for round_ in rounds), _MEGA),
    ),
    (
        "model_size_mb",
        "What the plugin's save() wrote after the last round, in MB (10^6 bytes): what there is to deploy. Earlier "
        "rounds don't count, however large.",
        "bytes after round T / 10^6",
        lambda rounds: _highest((round_.model_bytes for round_ in rounds[-1:]), _MEGA),
    ),
    (
        "memory_samples",
        "Old samples that the plugin keeps for replay, at most.",
        "max over rounds of len(memory)",
        lambda rounds: _highest(round_.memory_samples for round_ in rounds),
    ),
    (
        "memory_mb",
        "Size of the plugin's store of old samples, in MB (10^6 bytes), at most.",
        "max over rounds of memory.nbytes / 10^6",
        lambda rounds: _highest((round_.memory_bytes for round_ in rounds), _MEGA),
    ),
    (
        "memory_bytes",
        "Size of the plugin's store of old samples, in bytes, at most.",
        "max over rounds of memory.nbytes",
        lambda rounds: _highest(round_.memory_bytes for round_ in rounds),
    ),
    (
        "parameters",
        "Number of parameters of the networks that predict() calls, trainable or not, after the last round; blank for "
        "a plugin without a torch.nn.Module.",
        "sum of numel() over the parameters, shared ones once",
        lambda rounds: _last(round_.parameters for round_ in rounds),
    ),
    (
        "trainable_parameters",
        "Those of them with requires_grad, after the last round.",
        "sum of numel() over the parameters with requires_grad",
        lambda rounds: _last(round_.trainable_parameters for round_ in rounds),
    ),
    (
        "FLOPs",
        "Floating-point operations to predict one sample after the last round: matrix products, convolutions and "
        "attention; a multiplication with its addition is two.",
        "torch.utils.flop_counter.FlopCounterMode around predict() of one sample",
        lambda rounds: _last(round_.flops for round_ in rounds),
    ),
    (
        "inference_ms",
        "Wall-clock time in predict() on test sets per test sample, in ms, in the batches that the plugin takes.",
        "1000 * sum of eval_seconds over rounds 1..T / sum of test_samples",
        _inference_ms,
    ),
    (
        "samples_transfer_ratio",
        "Share of inferred samples that were sent on for training (Ianvs's formula: n of n gives n/(n+1), not 1).",
        "transferred / (inferred + 1)",
        lambda rounds: _samples("transferred", rounds) / (_samples("inferred", rounds) + 1),
    ),
    (
        "samples_transfer_share",
        "Share of inferred samples that were sent on for training: n of n gives 1.",
        "transferred / inferred",
        _transfer_share,
    ),
)
"""(name, summary, formula, function) of each."""

_SOURCES = {
    "FLOPs": "PyTorch",
    "samples_transfer_ratio": "KubeEdge Ianvs, core/testcasecontroller/metrics/metrics.py",
}
SYSTEM: tuple[Metric, ...] = tuple(
    Metric(name, "system", summary, name == "samples_per_second", _SOURCES.get(name, "ianvs"), formula)
    for name, summary, formula, _ in _DEFINED
)
_MEASURES = {name: function for name, _, _, function in _DEFINED}
