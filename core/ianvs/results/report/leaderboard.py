"""Results of cases -> a ranked leaderboard: one row per algorithm and hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import closest, one_line
from ianvs.base.types import CaseResult
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import PublishedSpec, RankSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_columns import columns_named
from ianvs.results.report.chosen import Chosen
from ianvs.results.report.columns import COSTS, Column, Kind, make_columns
from ianvs.results.report.gather import FailedCase, RowCases, common_name, gather
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.method_exams import MethodsOverExams, methods_over_exams
from ianvs.results.report.noise import noise_statement
from ianvs.results.report.published import agreement, by_column, published_summary
from ianvs.results.report.ranking import ranked_by_testenv
from ianvs.results.report.sealing_note import sealing_note
from ianvs.results.report.significance import ExamSignificance
from ianvs.results.report.statements import statements
from ianvs.results.report.values import Cell, shown_hyperparameters
from ianvs.results.stats import Summary, mean_interval, summarise
from ianvs.store import Study

__all__ = ["Leaderboard", "build_leaderboard"]

_SHORT = 100  # characters of an error message in the Status column


@dataclass(frozen=True)
class Leaderboard:
    """Rows in ranked order, and the meaning of every column. Bounds stand where they belong but take no rank.

    Where a job has several exams, each has its own ranking, one below the other. references: rows of reference runs,
    which are not shown; a failure of one is.
    """

    columns: tuple[Column, ...]
    rows: tuple[LeaderboardRow, ...]
    metrics: tuple[Metric, ...]  # of the metric columns, in their order
    sort_by: tuple[tuple[str, bool], ...]  # (metric column, descending)
    seeds: int  # expected per row
    references: tuple[LeaderboardRow, ...] = ()
    notes: tuple[str, ...] = ()  # what a reader must know of the data
    sealing: str = ""  # how the exam was kept from the learners, in a sentence
    significance: tuple[ExamSignificance, ...] = ()  # of each exam whose rows have a standing
    over_exams: MethodsOverExams | None = None  # where the job has several
    statements: tuple[str, ...] = ()  # how sure the ranking is, in sentences
    baseline: str | None = None  # the algorithm that `to_baseline` compares with
    studies: tuple[Study, ...] = ()  # searches, as far as they have come
    contract: str = NATIVE  # of the plugins (ianvs.config.contracts)

    @property
    def failures(self) -> tuple[tuple[LeaderboardRow, FailedCase], ...]:
        """Every failed case with its row, those of reference runs too."""
        return tuple((row, failure) for row in (*self.rows, *self.references) for failure in row.failures)

    def cell(self, row: LeaderboardRow, column: Column) -> Cell:
        """The value of one cell, typed; None is blank."""
        return _CELLS[column.kind](row, column.key)

    def select(self, spec: RankSpec) -> Leaderboard:
        """The part that `selected_dataitem` asks for: rows by paradigm, columns by module type, hyperparameter, metric.

        Ranks stay those of the whole leaderboard.
        """

        def chosen(name: str, wanted: Sequence[str]) -> bool:
            return "all" in wanted or name in wanted

        shown = [column.key for column in self.columns if column.kind == "metric"]
        of_metrics = [
            column for name in spec.metrics for column in ([name] if name == "all" else columns_named(name, shown))
        ]
        wanted: dict[str, Sequence[str]] = {
            "metric": of_metrics,
            **dict.fromkeys(("metric_std", "published", "published_std", "agrees"), of_metrics),
            "module": spec.modules,
            "hyperparameter": spec.hyperparameters,
        }
        rows = tuple(row for row in self.rows if chosen(row.paradigm, spec.paradigms))
        used = {"hyperparameter": {name for row in rows for name in row.hyperparameters}}
        columns = tuple(
            column
            for column in self.columns
            if chosen(column.key, wanted.get(column.kind, ("all",)))
            and (len(rows) == len(self.rows) or column.key in used.get(column.kind, {column.key}))
        )
        metrics = (metric for key, metric in zip(shown, self.metrics, strict=True) if chosen(key, wanted["metric"]))
        return replace(self, columns=columns, rows=rows, metrics=tuple(metrics))


def _mean(summary: Summary | None) -> float | None:
    return None if summary is None else summary.mean


def _std(summary: Summary | None) -> float | None:
    return None if summary is None else summary.std


_CELLS: Mapping[Kind, Callable[[LeaderboardRow, str], Cell]] = {
    "rank": lambda row, _: row.place,
    "rank_low": lambda row, _: None if row.standing is None else row.standing.low,
    "rank_high": lambda row, _: None if row.standing is None else row.standing.high,
    "tier": lambda row, _: None if row.standing is None else row.standing.tier,
    "p_best": lambda row, _: None if row.standing is None else row.standing.p_best,
    "algorithm": lambda row, _: row.algorithm,
    "testenv": lambda row, _: row.testenv,
    "metric": lambda row, key: row.texts[key] if key in row.texts else _mean(row.metrics.get(key)),
    "metric_std": lambda row, key: _std(row.metrics.get(key)),
    "published": lambda row, key: _mean(published_summary(row.published.get(key))),
    "published_std": lambda row, key: _std(published_summary(row.published.get(key))),
    "agrees": lambda row, key: agreement(row.metrics.get(key), row.published.get(key)),
    "paradigm": lambda row, _: row.paradigm,
    "round": lambda row, _: row.rounds,
    "dataset": lambda row, _: row.dataset,
    "module": lambda row, key: row.modules.get(key),
    "hyperparameter": lambda row, key: row.hyperparameters.get(key),
    "adopted": lambda row, _: None if row.adopted is None else f"{row.adopted[0]} of {row.adopted[1]}",
    "tried": lambda row, _: row.tried,
    "seeds": lambda row, _: len(row.seeds),
    "pareto": lambda row, _: "yes" if row.pareto else None,
    "cost": lambda row, key: _mean(row.costs.get(key)),
    "status": lambda row, _: row.status,
    "time": lambda row, _: row.time or None,
    "url": lambda row, _: ", ".join(row.urls),
}


def build_leaderboard(
    results: Iterable[CaseResult],
    rank: RankSpec,
    metrics: Sequence[Metric],
    metric_columns: Sequence[str],
    seeds: int,
    root: Path | None = None,
    published: Mapping[str, Mapping[str, PublishedSpec]] = MappingProxyType({}),
    chosen: Chosen | None = None,
    contract: str = NATIVE,
) -> Leaderboard:
    """The leaderboard of `results`, which are read once and not kept: memory grows with rows, not with score matrices.

    results: in the order of the plan, which fixes the order of columns and of rows that tie.
    metrics, metric_columns: the testenv's metrics in order, and the name of each one's column. A metric that yields
    several numbers (per class) has no column. seeds: how many cases belong to a row.
    root: paths of logs are shown relative to it, so that a report reads the same wherever it is written from.
    published: what others published, by algorithm and metric. chosen: what `results` were chosen from.
    contract: of the plugins.
    Raises ValueError when `rank.sort_by` names no metric column, or when a case comes twice.
    """
    shown = [(name, m) for name, m in zip(metric_columns, metrics, strict=True) if not m.mapping]
    sort_by = _sort_keys(rank, shown)
    everything = gather(results, [name for name, _ in shown], root)
    references = tuple(_row(group, seeds) for group in everything if group.case.role)
    groups = [group for group in everything if not group.case.role]
    names = [name for name, _ in shown]
    theirs = {algorithm: by_column(specs, names) for algorithm, specs in published.items()}
    listed = [replace(_row(group, seeds), published=theirs.get(group.case.algorithm, {})) for group in groups]
    if chosen is not None:
        listed = [_as_chosen(row, chosen) for row in listed]
    rows, significance = ranked_by_testenv(listed, sort_by, rank.baseline)
    columns = make_columns(
        shown,
        modules=(kind for group in groups for kind, _ in group.case.modules),
        hyperparameters=(name for group in groups for name in group.case.hyperparameters),
        several=any(group.case.testenv for group in groups),
        gated=any(row.adopted is not None for row in rows),
        measured=(key for key in COSTS for row in rows if key in row.costs and row.costs[key].mean is not None),
        published={name for row in rows for name in row.published},
        standing=bool(significance),
        pareto=any(row.pareto for row in rows),
        chosen=chosen is not None,
        measures={name: measure for group in groups for name, measure in group.measures.items()},
    )
    repeated = [group for group in everything if group.case.role == "repeat"]
    noise = noise_statement(rows, repeated, sort_by[0][0]) if sort_by else ""
    notes = tuple(dict.fromkeys(note for group in groups for note in group.notes))
    if damaged := tuple(dict.fromkeys(path for group in everything for path in group.damaged)):
        told = "Gone, or changed after they were stored, and therefore not believed"
        notes += (f"{told}: {one_line(damaged)}. Run the job again to have them made anew.",)
    sealing = sealing_note({one for group in groups for one in group.sealings}, contract)
    shown_metrics = tuple(metric for _, metric in shown)
    return Leaderboard(
        columns,
        rows,
        shown_metrics,
        sort_by,
        seeds,
        references,
        notes,
        sealing,
        significance=significance,
        contract=contract,
        over_exams=methods_over_exams(rows, *sort_by[0]) if sort_by else None,
        statements=tuple(filter(None, (*statements(rows, significance), *(chosen.said if chosen else ()), noise))),
        baseline=rank.baseline,
    )


def _as_chosen(row: LeaderboardRow, chosen: Chosen) -> LeaderboardRow:
    of = row.testenv, row.algorithm
    return replace(row, tried=chosen.tried.get(of), status="; ".join(filter(None, (row.status, chosen.marks.get(of)))))


def _sort_keys(spec: RankSpec, metrics: Sequence[tuple[str, Metric]]) -> tuple[tuple[str, bool], ...]:
    names = [name for name, _ in metrics]
    found: list[tuple[str, bool]] = []
    for name, falls in spec.sort_by:
        found += [(column, falls) for column in columns_named(name, names)]
        if not columns_named(name, names):
            known = ", ".join(names) or "none"
            hint = closest(name, names)
            raise ValueError(f"sort_by: '{name}' is not a metric column.{hint} The columns are: {known}.")
    return tuple(found) or tuple((name, metric.higher_is_better) for name, metric in metrics[:1])


def _row(group: RowCases, seeds: int) -> LeaderboardRow:
    expected = max(seeds, len(group.seen))
    complete = len(group.seeds) == expected
    order = np.argsort(group.seeds).tolist()
    by_seed = {name: tuple(values[i] for i in order) for name, values in group.metrics.items()} if complete else {}
    metrics = {name: summarise(values) for name, values in by_seed.items()}
    intervals = {name: mean_interval(values) for name, values in by_seed.items()}
    costs = {name: summarise(values) for name, values in group.costs.items()} if complete else {}
    modules: dict[str, str] = {}
    for kind, name in group.case.modules:
        modules[kind] = f"{modules[kind]}, {name}" if kind in modules else name
    if group.basemodel:
        modules["basemodel"] = group.basemodel
    return LeaderboardRow(
        id=group.case.row,
        algorithm=group.case.algorithm,
        paradigm=group.case.paradigm,
        rounds=group.rounds,
        dataset=group.dataset,
        modules=modules,
        hyperparameters=shown_hyperparameters(group.case.hyperparameters),
        seeds=tuple(sorted(group.seeds)),
        expected=expected,
        metrics=metrics,
        by_seed=by_seed,
        intervals={name: interval for name, interval in intervals.items() if interval is not None},
        samples=_mean_samples(group) if complete else {},
        costs=costs,
        tests={
            common_name(found.names, "test set", j): (found.score, summarise(found.learned), summarise(found.final))
            for j, found in (group.tests.items() if complete else ())
        },
        bound=group.bound,
        failures=tuple(group.failures),
        status=_status(group, expected, metrics),
        testenv=group.case.testenv,
        adopted=(group.adopted, group.judged) if group.judged else None,
        over_budget=tuple(group.over_budget),
        urls=tuple(f"cases/{case_id}" for case_id in sorted(group.seen)),
        texts={name: "; ".join(said) for name, said in group.texts.items()} if complete else {},
        remarks=dict(sorted(group.remarks.items())),
        time=group.latest.strftime("%Y-%m-%d %H:%M:%S") if group.latest else "",
    )


def _mean_samples(group: RowCases) -> dict[str, NDArray[np.float64]]:
    """Of scores of which all seeds have them, in as many groups."""
    found = {}
    for name, listed in group.samples.items():
        known = [one for one in listed if one is not None]
        if len(known) == len(listed) and len({len(one) for one in known}) == 1:
            found[name] = np.mean(known, axis=0)
    return found


def _status(group: RowCases, expected: int, metrics: Mapping[str, Summary]) -> str:
    """What a reader must know of a row, in one short line."""
    parts = []
    unfinished = expected - len(group.seeds) - len(group.failures)
    if group.failures:
        first = group.failures[0]
        log = f"; log {first.log_shown}" if first.log_shown else ""
        parts.append(f"{len(group.failures)} of {expected} failed: {first.text(_SHORT)}{log}")
    if unfinished:
        parts.append(f"{unfinished} of {expected} unfinished")
    if group.over_budget:
        parts.append(f"over the budget: {next(iter(group.over_budget))}")
    parts += group.warnings
    gaps = [name for name, summary in metrics.items() if 0 < summary.n < expected]
    parts += [f"{name} is missing in {expected - metrics[name].n} of {expected}" for name in gaps]
    parts += [f"{name} waits for its reference run" for name in group.waiting if name in metrics and name not in gaps]
    return "; ".join(["finished", *parts] if len(group.seeds) == expected else parts)
