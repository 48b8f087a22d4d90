"""The conversations of all rounds, for plugins of ianvs's own that look before training which of them they can take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ianvs.base.package import own_name
from ianvs.config.spec import AlgorithmSpec
from ianvs.running.planning import Plan, PlannedAlgorithm
from ianvs.running.planning.case_request import case_request
from ianvs.store import ExamRecord

__all__ = ["Rounds", "taught_texts"]


Rounds = tuple[tuple[list[Any], list[Any]], ...]  # for each round: what users said, and the replies


def taught_texts(
    plan: Plan, algorithm: PlannedAlgorithm, record: ExamRecord, known: dict[str, Rounds]
) -> Rounds | None:
    """None for other data, and for a plugin of others, which is not told what it will be taught later.

    known: by exam, so that each is read once, and sent once to the process that looks.
    """
    if record.kind != "conversation" or not _is_ours(algorithm.spec):
        return None
    if algorithm.exam_id not in known:
        seeds = plan.job.seeds
        first = next(algorithm.cases(seeds), algorithm.case({}, algorithm.seeds(seeds)[0]))  # any: it says which exam
        request = case_request(plan, first, algorithm, {})
        exam = request.exam()
        x, y = exam.dataset.train.x, exam.dataset.train.y
        known[algorithm.exam_id] = tuple((x[one.train].tolist(), y[one.train].tolist()) for one in exam.rounds)
    return known[algorithm.exam_id]


def _is_ours(algorithm: AlgorithmSpec) -> bool:
    return all(module.url is not None and _is_own(module.url) for module in algorithm.modules)


def _is_own(url: str) -> bool:
    if not url.endswith(".py"):
        return url.startswith("ianvs.testalgorithms.")
    name = own_name(Path(url).resolve())
    return name is not None and name.parts[:2] == ("ianvs", "testalgorithms")
