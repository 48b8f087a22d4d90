"""Pages of results that never ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ianvs.base.types import CaseResult, ScoreMatrix
from ianvs.results.page.replies import ExamQuestions
from ianvs.results.page.write_page import page_text
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.row_scores import PassedScores
from tests.unit.results.report.report_cases import board, result

__all__ = ["learned", "page_of", "square"]


def square(count: int, seed: int = 0, **names: tuple[str, ...]) -> ScoreMatrix:
    """Scores of so many rounds with a test set each."""
    values = np.random.default_rng(seed).random((count + 1, count)).round(3)
    told = {key: tuple(f"{key[:-1]} {k}" for k in range(count)) for key in ("rounds", "tests")} | names
    return ScoreMatrix(values, "accuracy", told["rounds"], told["tests"])


def learned(algorithm: str, seed: int = 0, rounds: int = 2, **more: Any) -> CaseResult:
    """A case with a matrix; its accuracy is that of the last round."""
    matrix = more.pop("matrix", None) or square(rounds, sum(map(ord, algorithm)) + seed)
    found = result(algorithm, seed, float(matrix.values[-1].mean()), 0.1, round_names=matrix.rounds, **more)
    return replace(found, matrices={"accuracy": matrix})


def page_of(results: Sequence[CaseResult], seeds: int = 1, table: Leaderboard | None = None, **more: Any) -> str:
    table = table or board(results, (("accuracy", True),), seeds)
    passed = PassedScores(table.seeds)
    kept = list(passed.watch(results))
    return page_text(table, passed, kept, ExamQuestions(Path("/no/workspace")), **more)
