"""`--to huggingface`: a dataset of results and model cards, as folders that can be pushed. Nothing is uploaded."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ianvs.base.types import CaseResult
from ianvs.results.exports.cards import dataset_card, model_card
from ianvs.results.exports.parquet_export import write_tables
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.values import slug
from ianvs.results.stored import Results
from ianvs.store import CaseStore, ExamStore

_TASKS = {
    "classification": "image-classification",
    "segmentation": "image-segmentation",
    "text": "text-generation",
    "conversation": "text-generation",
}
"""Kinds of data -> tasks as Hugging Face calls them."""


def write(results: Results, folder: Path) -> None:
    """`folder`/dataset (tables, README.md) and `folder`/models/<case>/README.md of each algorithm's best row.

    The card of a row is that of its median case by what the leaderboard ranks by: of an even number the lower one, so
    that no card shows a lucky draw.
    """
    data, models = folder / "dataset", folder / "models"
    data.mkdir()
    columns = write_tables(results, data, to="huggingface")
    chosen = {_median_case(row, results): row for row in _best_rows(results)}
    # Of the leaderboard's own cases: where it chose, what is left after the choice.
    finished = {(one.case.id, one.case.algorithm): one for one in results.reported if one.status == "finished"}
    found = {key: finished[key] for key in chosen if key in finished}
    (data / "README.md").write_text(dataset_card(results, columns, _task(results, next(iter(found.values()), None))))
    for key, result in found.items():
        case_folder = models / f"{slug(result.case.algorithm)}-seed{result.case.seed}-{result.case.id[:8]}"
        case_folder.mkdir(parents=True)
        card = model_card(results, chosen[key], result, _task(results, result))
        (case_folder / "README.md").write_text(card)


def _best_rows(results: Results) -> Iterable[LeaderboardRow]:
    """The highest row of each algorithm in each exam, of those that have all their cases; bounds are no competitors."""
    found: dict[tuple[str, str], LeaderboardRow] = {}
    for row in results.leaderboard.rows:
        if row.rank is not None:
            found.setdefault((row.testenv, row.algorithm), row)
    return found.values()


def _median_case(row: LeaderboardRow, results: Results) -> tuple[str, str]:
    """(id, algorithm)"""
    ids = {(c.row, c.algorithm, c.seed): c.id for c in results.case_list if c.testenv == row.testenv}
    name, falls = results.leaderboard.sort_by[0]
    scores = {seed: value for seed, value in zip(row.seeds, row.by_seed[name], strict=True) if value is not None}
    from_worst = sorted(scores, key=lambda seed: (scores[seed], seed), reverse=not falls)
    return ids[row.id, row.algorithm, from_worst[(len(from_worst) - 1) // 2]], row.algorithm


def _task(results: Results, result: CaseResult | None) -> str:
    identity = None if result is None else CaseStore(results.workspace).identity(result.case.id)
    exam = ExamStore(results.workspace).record(str(identity.get("exam_id", ""))) if identity else None
    return _TASKS.get(exam.kind, "other") if exam is not None else "other"
