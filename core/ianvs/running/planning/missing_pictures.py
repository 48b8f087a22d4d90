"""Finished cases that can't be scored any more: a metric reads predicted label pictures that were not stored."""

from __future__ import annotations

from ianvs.base.errors import Problem, one_line
from ianvs.exam.kinds.picture_kind import lacks_pictures
from ianvs.running.inspector import Inspector
from ianvs.running.planning.plan import Plan
from ianvs.store import CaseStore

__all__ = ["missing_pictures"]


def missing_pictures(plan: Plan, inspector: Inspector) -> list[Problem]:
    """A problem for each metric, which names the cases that have to be run again for it."""
    authored = {key: spec for scores in plan.scores for spec, key in scores if spec.url is not None}
    told = inspector.metrics(list(authored.values()))
    both = zip(authored, told, strict=True)
    reading = {key for key, metric in both if not isinstance(metric, list) and metric.pictures}
    if not reading:
        return []
    lacking: dict[str, list[str]] = {}
    for planned in plan:
        if planned.state == "finished":
            for _, key in plan.scores_of(planned.algorithm):
                case = planned.case.id
                if key in reading and not plan.store.has_score(case, key) and _lacks_pictures(plan.store, case):
                    lacking.setdefault(key, []).append(case[:8])
    return [Problem(_message(authored[key].name, cases), authored[key].place) for key, cases in lacking.items()]


def _lacks_pictures(store: CaseStore, case_id: str) -> bool:
    """Whether of some round only the first predicted label pictures are stored, not all of them."""
    return any(lacks_pictures(store.extras(case_id, round_.index)) for round_ in store.complete_rounds(case_id))


def _message(name: str, cases: list[str]) -> str:
    count = f"{len(cases)} finished cases" if len(cases) > 1 else "a finished case"
    return (
        f"metric '{name}' reads all predicted label pictures, which were stored only where a metric asked for them, "
        f"and of {count} only counts are: {one_line(cases)}. Run them again (`--rerun all`, or `--rerun` with the "
        "beginning of an id), or let the metric take one argument `confusion`: the counts."
    )
