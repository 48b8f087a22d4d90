"""Computes the metrics of a finished case by Ianvs's rules: labels as words, the result as the paradigm returned it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

import numpy as np

from ianvs.base.errors import PluginError
from ianvs.base.types import Measure, RoundResult, ScoreMatrix
from ianvs.config.contracts import ContractResult
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics import find
from ianvs.kubeedge.calls import errors_in
from ianvs.kubeedge.case_storage import read_outcome, read_pickle
from ianvs.kubeedge.datafiles import true_labels
from ianvs.kubeedge.exact_tables import remember, transfer
from ianvs.kubeedge.loading import import_modules, load_metric, prepare
from ianvs.kubeedge.outcome import number, numbers_of
from ianvs.kubeedge.work import Work, trains
from ianvs.kubeedge.yaml.file_models import KUBEEDGE_METRICS

Value = float | str | None
_REMEDY = " Let `using` in the testenv's dataset name the domains."
Matrix = list[list[float | None]]  # [k][j]; None: not evaluated

_MEASURES = {
    "uploaded_bytes": Measure("Bytes sent by clients to the server, or by the edge to the cloud, all together."),
    "downloaded_bytes": Measure("Bytes sent by the server to clients, or by the cloud to the edge, all together."),
    "cloud_rounds": Measure("Times that the cloud was asked, all together."),
    "latency_ms": Measure("Time of an answer over the simulated link, in ms.", "last"),
    "latency_p95_ms": Measure("The shortest time that 95 % of the answers did not exceed, in ms.", "last"),
    "edge_share": Measure("Share of samples that the edge model answered.", "last", higher_is_better=True),
}
"""Columns from the measurements of KubeEdge Ianvs's paradigms."""


def _rounds(outcome: Mapping[str, Any]) -> list[RoundResult]:
    """Return the costs of numbered rounds in order; other phases, such as the last test, count for the last round."""
    seconds, cpu = outcome["seconds"], outcome["cpu_seconds"]
    names = [name for name in seconds if name.isdigit()] or ["1"]
    first = max(0, len(names) - len(outcome["R"] or names))  # lifelong learning begins with round 0 in our count
    groups = [names[:first], *([name] for name in names[first:])]
    groups[-1] = [*groups[-1], *(other for other in seconds if not other.isdigit())]
    results = []
    for index, group in enumerate(groups):
        walls, cpus = ([phases.get(name, {}) for name in group] for phases in (seconds, cpu))
        last = index == len(groups) - 1
        recorded = outcome["measures"] if last else {}
        results.append(
            RoundResult(
                index,
                group[0] if group else "",
                train_seconds=_sum(walls, "train"),
                eval_seconds=_sum(walls, ""),
                train_cpu_seconds=_sum(cpus, "train"),
                eval_cpu_seconds=_sum(cpus, ""),
                measures={name: _total(value) for name, value in recorded.items() if name in _MEASURES},
            )
        )
    return results


def _total(value: SupportsFloat | list[SupportsFloat] | None) -> float:
    return math.fsum(map(_total, value)) if isinstance(value, list) else float(value or 0)


def _sum(phases: list[Mapping[str, float]], phase: str) -> float:
    """Return the sum of the training phase, or ("") of all others."""
    return math.fsum(v for times in phases for name, v in times.items() if (name == "train") == (phase == "train"))


def score(work: Work, metrics: Sequence[MetricSpec]) -> ContractResult:
    """Return the metrics of a case, and its records.

    The matrices are those of MATRIX, for "all", each task, and "task_avg". Raises PluginError if the case has not run
    to its end, and for a metric that can't be loaded or fails.
    """
    outcome = read_outcome(work.folder)
    if outcome is None:
        raise PluginError("the plugin's process has ended without a result.", code="failed-plugin")
    values, matrices = _system_scores(outcome)
    wanted: dict[str, Value] = {}
    warnings = []
    ours = [metric for metric in metrics if not metric.url and metric.name in KUBEEDGE_METRICS]
    exact: dict[str, object] = {metric.name: values.get(metric.name) for metric in metrics}
    for metric in ours:
        wanted.update({name: values[name] for name in (metric.name, f"GEM_{metric.name}") if name in values})
        if not matrices if metric.name == "MATRIX" else values[metric.name] is None:
            remedy = _REMEDY if outcome["paradigm"] == "incrementallearning" and metric.name in ("BWT", "FWT") else ""
            warnings.append(f"{outcome['paradigm']} gave no {metric.name} in this case: its cell is empty.{remedy}")
    theirs = [metric for metric in metrics if metric not in ours]
    if theirs:
        prepare(work)
        result = labels = None
        for metric in theirs:
            function = load_metric(metric)
            with errors_in(f"metric '{metric.name}'", metric.url):
                if metric.name in KUBEEDGE_METRICS:
                    value = function(_stored(work, "system"))
                else:
                    if labels is None:
                        result = _stored(work, "result")
                        labels = true_labels(str(outcome["labels_file"]), work.label)
                    value = function(labels, result)
                wanted[metric.name] = _shown(value)
                exact[metric.name] = value
    if (system_metrics := [m.name for m in ours if m.name in ("BWT", "FWT", "MATRIX")]) and outcome["MATRIX"]:
        rows = {key: [[c.get("accuracy") if c else None for c in r] for r in M] for key, M in outcome["MATRIX"].items()}
        mapping = {key: [[cell for cell in row if cell is not None] for row in M[1:]] for key, M in rows.items()}
        system = {**transfer(rows.get("all", [])), "MATRIX": mapping}
        exact.update({name: system[name] for name in system_metrics})
    remember(work.folder, exact)
    rounds = _rounds(outcome)
    return ContractResult(
        wanted,
        rounds,
        metric=work.model_metric.name,
        R=outcome["R"],
        untrained=outcome["untrained"],
        matrices=matrices,
        measures={name: measure for name, measure in _MEASURES.items() if name in rounds[-1].measures},
        test_labels=outcome["handed_test_labels"],
        warnings=warnings,
        notes=outcome["notes"],
        dataset=" ".join(work.using),
        parts=work.using,
        trained=not trains(work) or any("train" in phases for phases in outcome["seconds"].values()),
    )


def _stored(work: Work, name: str) -> object:
    """Return an object of the outcome.

    Its classes are searched on sys.path, and if necessary all modules are imported.
    """
    try:
        return read_pickle(work.folder, name)
    except (AttributeError, ImportError):
        import_modules(work)
        return read_pickle(work.folder, name)


def _shown(value: object) -> Value:
    """Return a number as a number, None for nothing and for infinity, anything else as text."""
    finite = number(value)
    return finite if finite is not None or value is None or isinstance(value, float) else str(value)


def _system_scores(outcome: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, Matrix]]:
    """Return all metrics that need no label and no result: values by column, and the matrices after round 1 and later.

    BWT and FWT are Ianvs's functions; GEM_BWT and GEM_FWT are those of the literature.
    """
    record, forget = outcome["samples_transfer_ratio"], outcome["forget_rate"]
    answered, sent = sum(count for count, _ in record or ()), sum(count for _, count in record or ())
    average = (outcome["task_avg_acc"] or {}).get("accuracy")
    values: dict[str, Value] = {
        "samples_transfer_ratio": None if record is None else round(sent / (answered + 1), 4),
        **_literature(outcome["R"], outcome["untrained"]),
        **_ianvs_transfer(_rows(outcome)),
        "task_avg_acc": None if average is None else round(average, 3),
        "forget_rate": round(sum(forget) / len(forget), 3) if forget else None,
    }
    return values, {key: numbers_of(rows)[1:] for key, rows in (outcome["MATRIX"] or {}).items()}


def _rows(outcome: Mapping[str, Any]) -> Matrix:
    """Return the scores before round 1 and after each round; [] if the paradigm has none."""
    if outcome["MATRIX"]:
        return numbers_of(outcome["MATRIX"].get("all"))
    return [outcome["untrained"], *outcome["R"]] if outcome["R"] and outcome["untrained"] else []


def _literature(R: Matrix | None, untrained: Sequence[float | None] | None) -> dict[str, Value]:
    """Return GEM_BWT and GEM_FWT, None if a number that they need is missing."""
    values: dict[str, Value] = {"GEM_BWT": None, "GEM_FWT": None}
    if R and all(len(row) == len(R) for row in R):
        first = None if untrained is None else np.array(untrained, dtype=float)
        matrix = ScoreMatrix.from_rounds(np.array(R, dtype=float), first)
        for name in values:
            metric = find(name)
            if metric is not None and metric.level == "matrix" and metric.function is not None:
                values[name] = number(metric.function(matrix))
    return values


def _ianvs_transfer(M: Matrix) -> dict[str, Value]:
    """Return values by Ianvs's formulas, which need T + 1 rows of T numbers; else None."""
    return {name: None if any(None in row for row in M) else value for name, value in transfer(M).items()}
