"""Results of cases that never ran, for the tests of reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.types import CaseResult, Failure, RoundResult, ScoreMatrix, Status, TestCase
from ianvs.config.spec import RankSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.results.report.leaderboard import Leaderboard, build_leaderboard

WORKSPACE = Path("/somewhere/workspace")
ACCURACY = Metric("accuracy", "score", "Share of correct predictions.", source="folklore", formula="correct / all")
FORGETTING = Metric("lost", "matrix", "What was forgotten.", higher_is_better=False)
METRICS = (ACCURACY, FORGETTING)


def result(
    algorithm: str,
    seed: int = 0,
    accuracy: float | None = 0.5,
    lost: float | None = 0.1,
    hyperparameters: Mapping[str, Any] | None = None,
    status: Status = "finished",
    failure: Failure | None = None,
    bound: bool = False,
    modules: tuple[tuple[str, str], ...] = (("basemodel", "Network"),),
    paradigm: str = "incrementallearning",
    finished_at: str | None = "2026-03-01T12:00:00+00:00",
    rounds: tuple[RoundResult, ...] | None = None,
    matrices: Mapping[str, ScoreMatrix] | None = None,
    round_names: tuple[str, ...] = ("first", "second"),
) -> CaseResult:
    """One case; cases with the same algorithm and hyperparameters are one row."""
    hyperparameters = hyperparameters or {}
    row = f"{algorithm}-{sorted(map(str, hyperparameters.items()))}".encode().hex()
    case = TestCase(f"{row}-{seed}", row, algorithm, paradigm, modules, hyperparameters, seed)
    finished = status == "finished"
    costs = (
        RoundResult(0, "untrained", eval_seconds=0.5, peak_memory_bytes=200_000_000),
        RoundResult(1, "first", train_seconds=1.0 + seed, eval_seconds=0.5, peak_memory_bytes=300_000_000),
        RoundResult(2, "second", train_seconds=2.0, eval_seconds=0.5, peak_memory_bytes=250_000_000),
    )
    return CaseResult(
        case=case,
        status=status,
        dataset="digits",
        round_names=round_names,
        directory=WORKSPACE / "cases" / case.id,
        failure=failure,
        bound=bound,
        rounds=costs if rounds is None else rounds,
        matrices=matrices or {},
        metrics={"accuracy": accuracy, "lost": lost} if finished else {},
        finished_at=finished_at if status != "unfinished" else None,
    )


def failed(algorithm: str, seed: int = 0, message: str = "out of cheese", **more: Any) -> CaseResult:
    failure = Failure("exception", "RuntimeError", message, WORKSPACE / "cases" / "ab12" / "log.txt")
    return result(algorithm, seed, status="failed", failure=failure, **more)


def board(
    results: Iterable[CaseResult],
    sort_by: tuple[tuple[str, bool], ...] = (),
    seeds: int = 1,
    metrics: Sequence[Metric] = METRICS,
) -> Leaderboard:
    names = [metric.name for metric in metrics]
    return build_leaderboard(results, RankSpec(sort_by), metrics, names, seeds, WORKSPACE)


def cells(leaderboard: Leaderboard, title: str) -> list[Any]:
    """The values of one column, from the first row to the last."""
    (column,) = [column for column in leaderboard.columns if column.title == title]
    return [leaderboard.cell(row, column) for row in leaderboard.rows]


def matrix(values: Sequence[Sequence[float]]) -> ScoreMatrix:
    return ScoreMatrix(np.array(values, dtype=np.float64), "accuracy", ("first", "second"), ("a", "b"))


def suite() -> list[CaseResult]:
    """Two seeds of everything: a bound, two of replay, a method that fails once, and one that holds a secret."""
    shared = {"learning_rate": 1e-3, "epochs": 20}
    return [
        result("replay", 0, 0.90, 0.10, {**shared, "memory": 200}),
        result("replay", 1, 0.92, 0.12, {**shared, "memory": 200}),
        result("replay", 0, 0.94, 0.06, {**shared, "memory": 500}),
        result("replay", 1, 0.96, 0.04, {**shared, "memory": 500}),
        result("joint", 0, 0.99, 0.00, shared, bound=True),
        result("joint", 1, 0.97, 0.00, shared, bound=True),
        result("ewc", 0, 0.99, 0.00, {**shared, "strength": 100.0}),
        failed("ewc", 1, hyperparameters={**shared, "strength": 100.0}),
        result("hub", 0, 0.20, 0.80, {**shared, "api_key": "hf-cheddar"}),
        result("hub", 1, 0.22, 0.80, {**shared, "api_key": "hf-cheddar"}),
    ]
