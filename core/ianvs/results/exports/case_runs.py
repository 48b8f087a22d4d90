"""A case in the terms of experiment trackers: a run with parameters, tags, final numbers, and series over rounds."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from ianvs.base.types import CaseResult, RoundResult, ScoreMatrix, TestCase
from ianvs.exam.metrics.metric_columns import MetricColumn
from ianvs.results.report.aggregate_cases import case_costs, case_facts, failure_facts, utc
from ianvs.results.report.row_tables import to_frame
from ianvs.results.report.values import Value, provenance_facts, slug
from ianvs.results.stored import Results

Series = tuple[tuple[int, float], ...]
"""(round, value) in the order of rounds; 0 is the untrained model. Rounds without a value are left out."""

COSTS_OF_ROUNDS: Mapping[str, str] = {
    "train_samples": "training samples that were served",
    "test_samples": "test samples that were asked",
    "train_seconds": "wall-clock seconds in train()",
    "eval_seconds": "wall-clock seconds in predict()",
    "train_cpu_seconds": "processor seconds in train()",
    "eval_cpu_seconds": "processor seconds in predict()",
    "peak_memory_bytes": "most memory of the case's processes so far, above that before the plugin was built",
    "peak_gpu_bytes": "highest memory on the accelerator so far",
    "model_bytes": "what save() wrote",
    "memory_samples": "old samples that are kept for replay",
    "memory_bytes": "their size",
}
"""Fields of RoundResult that are costs, with their meaning."""


_PARAMS = ("algorithm", "exam", "dataset", "paradigm", "rounds", "seed")


@dataclass(frozen=True)
class CaseRun:
    """The stored facts of one case.

    Attributes:
        name: See `run_name`.
        numbers: `final/<column>` as in the leaderboard, costs included.
        series: `score/<score>`, the mean over evaluated test sets, and `test/<score>/<test set>` of each;
            `metric/<metric>` the value of a metric over the matrix after each round, if its source defines one;
            `cost/<cost>` the costs of each round.
        curves: `train/<name>`, values that the learner reported, by hundredths of rounds.
        ended: None if it has not ended.
    """

    name: str
    result: CaseResult
    params: Mapping[str, Value]
    tags: Mapping[str, str]
    numbers: Mapping[str, float]
    series: Mapping[str, Series]
    curves: Mapping[str, Series]
    ended: datetime | None

    @property
    def by_round(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Yield (round, {series: value}) in the order of rounds."""
        rounds = sorted({k for series in self.series.values() for k, _ in series})
        values = {name: dict(series) for name, series in self.series.items()}
        for k in rounds:
            yield k, {name: points[k] for name, points in values.items() if k in points}


def case_runs(results: Results) -> Iterator[CaseRun]:
    """Yield every case of a job, reference runs too, in the order of the plan; read one at a time."""
    for result in results:
        yield _run(results, result, results.metrics.get(result.case.testenv, ()))


def metric_series(result: CaseResult, columns: Sequence[MetricColumn]) -> dict[str, Series]:
    """Return the values after each round of metrics over a score matrix whose source defines them."""
    series = {}
    for column in columns:
        matrix, metric = result.matrices.get(column.score), column.metric
        if matrix is None or metric.level != "matrix" or metric.series is None:
            continue
        if result.metrics.get(column.name) is not None:
            series[column.name] = _series(enumerate(metric.series(matrix), 1))
    return series


def run_name(case: TestCase) -> str:
    """Return a name of letters, digits, "-", "_" and ".", unique for each case of a job."""
    return f"{slug(case.algorithm)}-seed{case.seed}-{case.id[:8]}"


def leaderboard_markdown(results: Results) -> str:
    """Return the leaderboard in markdown."""
    board = to_frame(results.leaderboard).astype(object)
    return str(board.where(board.notna(), "").to_markdown(index=False))


def notes_list(results: Results) -> str:
    """Return the notes for readers, as a list in markdown."""
    return "\n".join(f"- {note}" for note in results.notes)


def matrix_table(matrix: ScoreMatrix) -> str:
    """Return a score matrix in markdown: a row after each round, a column for each test set."""
    lines = [["after round", *matrix.tests], ["---", *["---:"] * len(matrix.tests)]]
    for name, row in zip(("untrained", *matrix.rounds), matrix.values, strict=True):
        lines.append([name, *("" if math.isnan(value) else f"{value:.4f}" for value in row)])
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _run(results: Results, result: CaseResult, columns: Sequence[MetricColumn]) -> CaseRun:
    case = result.case
    facts = case_facts(result) | {"exam": case.testenv or results.name}
    named = [name for name in facts if name.startswith(("module.", "hp."))]
    params = {name: facts[name] for name in (*_PARAMS, *named)}
    values = {**case_costs(result), **result.metrics}
    numbers = {f"final/{name}": float(value) for name, value in values.items() if value is not None}
    series = {name: points for matrix in result.matrices.values() for name, points in _scores(result, matrix)}
    series |= {f"metric/{name}": points for name, points in metric_series(result, columns).items()}
    series |= {f"cost/{name}": points for name, points in _costs(result.rounds).items()}
    with_curves = [round_ for round_ in result.rounds if round_.curves]
    return CaseRun(
        run_name(case),
        result,
        params,
        _tags(results, result),
        {name: value for name, value in numbers.items() if math.isfinite(value)},
        {name: points for name, points in series.items() if points},
        {
            f"train/{name}": _series(
                (round(100 * (r.index - 1 + s)), v) for r in with_curves for s, v in r.curves.get(name, ())
            )
            for name in sorted({name for r in with_curves for name in r.curves})
        },
        utc(result.finished_at) if result.finished_at else None,
    )


def _scores(result: CaseResult, matrix: ScoreMatrix) -> Iterator[tuple[str, Series]]:
    """Yield series of scores.

    The mean is over the test sets that the leaderboard uses; evaluated ones, if it has gaps, too.
    """
    with_gaps = result.metrics.get(matrix.metric) is not None
    evaluated = (row[~np.isnan(row)] if with_gaps else row for row in matrix.values)
    yield f"score/{matrix.metric}", _series(enumerate(row.mean() if row.size else math.nan for row in evaluated))
    plain = [test.replace("/", "_") for test in matrix.tests]  # trackers group names at a "/"
    for j, test in enumerate(plain):
        name = test if plain.count(test) == 1 else f"{test} ({j + 1})"
        yield f"test/{matrix.metric}/{name}", _series(enumerate(matrix.values[:, j]))


def costs_of(round_: RoundResult) -> dict[str, float | None]:
    """Return the costs of a round, and the measures of its paradigm."""
    return {**{name: getattr(round_, name) for name in COSTS_OF_ROUNDS}, **round_.measures}


def _costs(rounds: Sequence[RoundResult]) -> dict[str, Series]:
    by_round = {round_.index: costs_of(round_) for round_ in rounds}
    return {
        name: _series((k, value) for k, costs in by_round.items() if (value := costs.get(name)) is not None)
        for name in dict.fromkeys(name for costs in by_round.values() for name in costs)
    }


def _series(pairs: Iterable[tuple[int, float]]) -> Series:
    return tuple((k, float(value)) for k, value in pairs if math.isfinite(value))


def _tags(results: Results, result: CaseResult) -> dict[str, str]:
    case, failed = result.case, failure_facts(result)
    tags = {
        "job": results.name,
        "case": case.id,
        "row": case.row,
        "status": result.status,
        "role": case.role or ("bound" if result.bound else "competitor"),
        "basemodel": result.basemodel,
        "rounds": "; ".join(result.round_names),
        "over_budget": "; ".join(result.over_budget),
        "warnings": "; ".join(result.warnings),
        "remark": result.remark,
        "failure": f"{failed['error']}: {failed['message']}" if failed["error"] else "",
        "finished_at": result.finished_at or "",
        **{f"text.{name}": text for name, text in result.texts.items()},
        "command": str(results.provenance.get("command") or ""),
    }
    facts = provenance_facts(result.provenance or results.provenance)
    tags |= {f"provenance.{name.lower()}": fact for name, fact in facts.items()}
    return {name: text for name, text in tags.items() if text}
