"""A case of KubeEdge Ianvs's contract, from what core says of it to what core stores of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

from ianvs.base.errors import PluginError
from ianvs.base.types import Measure, RoundResult
from ianvs.config.contracts import ContractCase, ContractResult
from ianvs.kubeedge.kubeedge_work import metrics_of, settings_of_exam, work_of
from ianvs.kubeedge.run import run
from ianvs.kubeedge.scores import score
from ianvs.kubeedge.storing import read_outcome

__all__ = ["run_case", "score_case"]

_MEASURES = {
    "uploaded_bytes": Measure("Bytes that clients sent to the server, over all rounds and clients."),
    "downloaded_bytes": Measure("Bytes that the server sent to clients, over all rounds and clients."),
    "edge_share": Measure("Share of samples that the edge model answered.", "last", higher_is_better=True),
}
"""What Ianvs's paradigms measure that becomes a column, as far as they do."""


def run_case(case: ContractCase, report: Callable[[str], None]) -> None:
    """`run`, of what core says of the case."""
    run(work_of(case), report)


def score_case(case: ContractCase) -> ContractResult:
    """Its metrics, by `score`, and what it recorded. Raises PluginError where it has not run to its end."""
    work = work_of(case)
    outcome = read_outcome(work.folder)
    if outcome is None:
        raise PluginError("the plugin's process has ended without a result.")
    scored = score(work, metrics_of(case.metrics))
    rounds = _rounds(outcome)
    return ContractResult(
        scored.values,
        rounds,
        metric=settings_of_exam(case.testenv).model_eval.model_metric.name,
        R=outcome["R"],
        untrained=outcome["untrained"],
        matrices=scored.matrices,
        measures={name: measure for name, measure in _MEASURES.items() if name in rounds[-1].measures},
        test_labels=outcome["handed_test_labels"],
        warnings=scored.warnings,
        notes=outcome["notes"],
    )


def _rounds(outcome: Mapping[str, Any]) -> list[RoundResult]:
    """What rounds cost: numbered ones in their order; all else, such as the last test, goes with the last of them."""
    seconds, cpu = outcome["seconds"], outcome["cpu_seconds"]
    names = [name for name in seconds if name.isdigit()] or ["1"]
    first = max(0, len(names) - len(outcome["R"] or names))  # lifelong learning begins with a round 0, as we count
    groups = [names[:first], *([name] for name in names[first:])]
    groups[-1] = [*groups[-1], *(other for other in seconds if not other.isdigit())]
    found = []
    for index, group in enumerate(groups):
        walls, cpus = ([of.get(name, {}) for name in group] for of in (seconds, cpu))
        last = index == len(groups) - 1
        told = outcome["measures"] if last else {}
        found.append(
            RoundResult(
                index,
                group[0] if group else "",
                train_seconds=_sum(walls, "train"),
                eval_seconds=_sum(walls, ""),
                train_cpu_seconds=_sum(cpus, "train"),
                eval_cpu_seconds=_sum(cpus, ""),
                measures={name: _total(value) for name, value in told.items() if name in _MEASURES},
            )
        )
    return found


def _total(value: SupportsFloat | list[SupportsFloat] | None) -> float:
    """Of a number, or of lists of them."""
    return math.fsum(map(_total, value)) if isinstance(value, list) else float(value or 0)


def _sum(phases: list[Mapping[str, float]], phase: str) -> float:
    """Of the training phase, or ("") of all others."""
    return math.fsum(v for one in phases for name, v in one.items() if (name == "train") == (phase == "train"))
