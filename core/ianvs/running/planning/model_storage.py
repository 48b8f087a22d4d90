"""Estimates the disk space of models that are kept until they are evaluated, as with sandboxes."""

from __future__ import annotations

import shutil
from pathlib import Path

from ianvs.running.planning.plan import Plan
from ianvs.store import ExamStore


def models_text(rounds: int, cases: int, size: int, workspace: Path) -> str:
    """Return the estimate as text. size: bytes of one model."""
    megabytes, free = rounds * cases * size / 1e6, shutil.disk_usage(workspace).free / 1e6
    return (
        f"models of {rounds} rounds x {cases} cases x {mb_text(size / 1e6)} take {mb_text(megabytes)} until they are "
        f"evaluated; the disk has {mb_text(free)} free"
    )


def mb_text(megabytes: float) -> str:
    """Return megabytes with two significant digits."""
    return f"{megabytes:,.0f} MB" if megabytes >= 10 else f"{megabytes:.2g} MB"


def planned_models_text(plan: Plan) -> str:
    """Return the estimate for a plan, if one of its models is stored; "" without sandboxes."""
    if not plan.job.sandboxed:
        return ""
    records = [ExamStore(plan.job.workspace).record(algorithm.exam_id) for algorithm in plan.algorithms]
    rounds = max((len(record.rounds) for record in records if record is not None), default=0)
    cases = len(plan) if plan.job.examine == "after all cases" else 1
    sizes = (result.model_bytes or 0 for case, _ in plan.cases() for result in plan.store.trained_rounds(case.id)[1:2])
    if rounds and (size := max(sizes, default=0)):
        return models_text(rounds, cases, size, plan.job.workspace)
    factor = f"{rounds} rounds x " if rounds else ""
    return (
        f"models of {factor}{cases} cases are kept until they are evaluated; `ianvs plan` "
        "shows their size when one model is stored"
    )
