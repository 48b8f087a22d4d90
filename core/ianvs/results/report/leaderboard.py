"""Builds a ranked leaderboard from results of cases: one row per algorithm and hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from ianvs.base.errors import closest, one_line
from ianvs.base.types import CaseResult
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import PublishedSpec, RankSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_columns import columns_named, whole_of
from ianvs.results.report.aggregate_cases import gather, row_of
from ianvs.results.report.columns import Column, Kind, agreement, make_columns, with_distinct_titles
from ianvs.results.report.document import Note
from ianvs.results.report.leaderboard_row import FailedCase, LeaderboardRow, RowKey
from ianvs.results.report.part_columns import only_in_csv, part_notes, with_part_columns
from ianvs.results.report.ranking import (
    ExamSignificance,
    MethodsOverExams,
    cost_tolerance,
    methods_over_exams,
    ranked_by_testenv,
)
from ianvs.results.report.row_names import row_names
from ianvs.results.report.statements import noise_statement, statements
from ianvs.results.report.values import Value
from ianvs.store import Study


@dataclass(frozen=True)
class SelectedResults:
    """Configurations that were selected on other results than those that a leaderboard reports.

    Attributes:
        results: The reported results of the selected configurations.
        seeds: Number of cases of a row.
        tried: Number of configurations by (testenv, algorithm).
        texts: Sentences on how they were selected.
        marks: Short qualification of a row's selection by (testenv, algorithm).
    """

    results: Iterable[CaseResult]
    seeds: int
    tried: Mapping[tuple[str, str], int]
    texts: tuple[str, ...]
    marks: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True)
class Leaderboard:
    """Rows in ranked order, and the meaning of every column.

    Rows of upper bounds are sorted among the others, and take no rank.
    If a job has several exams, each has its own ranking, one below the other. references: rows of reference runs, which
    are only shown if they failed.
    """

    columns: tuple[Column, ...]
    rows: tuple[LeaderboardRow, ...]
    sort_by: tuple[tuple[str, bool], ...]  # (metric column, descending)
    seeds: int  # expected per row
    references: tuple[LeaderboardRow, ...] = ()
    notes: tuple[Note, ...] = ()  # on the job and its data
    significance: tuple[ExamSignificance, ...] = ()  # for each exam with comparable rows
    over_exams: MethodsOverExams | None = None  # if the job has several exams
    statements: tuple[str, ...] = ()  # how sure the ranking is, in sentences
    baseline: str | None = None  # the algorithm that `to_baseline` compares with
    studies: tuple[Study, ...] = ()  # searches with their progress
    contract: str = NATIVE  # of the plugins (ianvs.config.contracts)

    @cached_property
    def row_names(self) -> Mapping[RowKey, str]:
        """Name of each row by (id, algorithm); see `ianvs.results.report.row_names`."""
        return row_names(self.rows)

    @property
    def failures(self) -> tuple[tuple[LeaderboardRow, FailedCase], ...]:
        """Every failed case with its row, reference runs included."""
        return tuple((row, failure) for row in (*self.rows, *self.references) for failure in row.failures)

    def cell(self, row: LeaderboardRow, column: Column) -> Value:
        """Return the value of one cell, typed; None is blank."""
        return _CELLS[column.kind](row, column.key)

    def select(self, spec: RankSpec) -> Leaderboard:
        """Return the part that `selected_dataitem` names: rows by paradigm, columns by module type, hyperparameter,
        metric.

        Ranks stay those of the whole leaderboard.
        """

        def chosen(name: str, wanted: Sequence[str]) -> bool:
            return "all" in wanted or name in wanted

        shown = [column.key for column in self.columns if column.kind == "metric"]
        of_metrics = [key for name in spec.metrics for key in ([name] if name == "all" else columns_named(name, shown))]
        wanted: dict[str, Sequence[str]] = {"module": spec.modules, "hyperparameter": spec.hyperparameters}
        wanted |= dict.fromkeys(_OF_METRICS, of_metrics)
        rows: Sequence[LeaderboardRow] = [row for row in self.rows if chosen(row.paradigm, spec.paradigms)]
        used = {"hyperparameter": {name for row in rows for name in row.hyperparameters}}
        columns = [
            column
            for column in self.columns
            if column.kind not in wanted
            or (
                any(chosen(name, wanted[column.kind]) for name in (column.key, column.full))
                and (len(rows) == len(self.rows) or column.key in used.get(column.kind, {column.key}))
            )
        ]
        for kinds in (_OF_METRICS, ("module",), ("hyperparameter",)):
            if "all" not in (order := list(wanted[kinds[0]])):  # columns are in the order of the request
                some = [column for column in columns if column.kind in kinds]
                some.sort(key=lambda c, order=order: order.index(c.key if c.key in order else c.full))  # type: ignore[misc]
                columns = [some.pop(0) if column.kind in kinds else column for column in columns]
        if self.contract != NATIVE:  # rows that differ only in time and url are merged
            compared = [column for column in columns if column.kind in _COMPARED]
            first: dict[object, LeaderboardRow] = {}
            for row in rows:
                first.setdefault(tuple(str(self.cell(row, c)) for c in compared) if row.complete else id(row), row)
            rows = list(first.values())
        return replace(self, columns=tuple(columns), rows=tuple(rows))


_OF_METRICS = ("metric", "metric_std", "published", "published_std", "agrees")
_COMPARED = ("algorithm", "testenv", "metric", "paradigm", "module", "hyperparameter")
_CELLS: Mapping[Kind, Callable[[LeaderboardRow, str], Value]] = {
    "rank": lambda row, _: row.place,
    "rank_low": lambda row, _: None if row.standing is None else row.standing.low,
    "rank_high": lambda row, _: None if row.standing is None else row.standing.high,
    "tier": lambda row, _: None if row.standing is None else row.standing.tier,
    "algorithm": lambda row, _: row.algorithm,
    "testenv": lambda row, _: row.testenv,
    "metric": lambda row, key: row.texts[key] if key in row.texts else row.mean(key),
    "metric_std": lambda row, key: row.metrics[key].std if key in row.metrics else None,
    "published": lambda row, key: row.published[key].in_our_unit()[0] if key in row.published else None,
    "published_std": lambda row, key: row.published[key].in_our_unit()[1] if key in row.published else None,
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
    "cost": lambda row, key: row.cost(key),
    "overlap": lambda row, _: row.overlap or None,
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
    overlaps: Mapping[str, str] = MappingProxyType({}),
    chosen: SelectedResults | None = None,
    contract: str = NATIVE,
) -> Leaderboard:
    """Return the leaderboard of `results`, which are read once and not kept: memory grows with rows, not with matrices.

    Args:
        results: In the order of the plan, which fixes the order of columns and of tied rows.
        rank: What to rank by.
        metrics: The testenv's metrics in order. A metric with several numbers (per class) has a column for each
            instead.
        metric_columns: The name of each one's column.
        seeds: Number of cases of a row.
        root: Paths of logs are shown relative to it, so that a report does not depend on where it is written.
        published: Published numbers by algorithm and metric.
        overlaps: Overlap of pretraining data with the exam, by row.
        chosen: The selection that `results` come from.
        contract: Of the plugins.

    Raises:
        ValueError: If `rank.sort_by` names no metric column, or a case occurs twice.
    """
    everything = gather(results, metric_columns, root)
    shown, parts = with_part_columns(list(zip(metric_columns, metrics, strict=True)), everything)
    sort_by = _sort_keys(rank, shown, parts, metric_columns)
    names = [name for name, _ in shown]
    # If a metric's direction is unknown, sort_by determines it; in Ianvs any word but ascend means descend.
    given = dict(sort_by) if contract == NATIVE else {}
    for place, (name, metric) in enumerate(shown):
        if metric.direction is None and name in given:
            shown[place] = name, replace(metric, higher_is_better=given[name], direction_known=True)
    groups = [group for group in everything if not group.case.role]
    listed = []
    for group in groups:
        theirs = published.get(group.case.algorithm, {}).items()
        by_column = {column: spec for name, spec in theirs for column in columns_named(name, names)}
        listed.append(replace(row_of(group, seeds), published=by_column, overlap=overlaps.get(group.case.row, "")))
    if chosen is not None:
        listed = [_with_selection(row, chosen) for row in listed]
    repeated = [group for group in everything if group.case.role == "repeat"]
    rows, significance = ranked_by_testenv(listed, sort_by, rank.baseline, cost_tolerance(groups, repeated))
    texts = [*statements(rows, significance, sort_by[0][0] if sort_by else ""), *(chosen.texts if chosen else ())]
    if sort_by:
        texts.append(noise_statement(rows, repeated, sort_by[0][0]))
    of_data = dict.fromkeys(note for group in groups for note in group.notes)
    notes = [Note("data", note, about="testenv") for note in of_data]
    notes += part_notes(parts, rank)
    if damaged := tuple(dict.fromkeys(path for group in everything for path in group.damaged)):
        text = f"Gone, or changed after they were stored, and therefore not believed: {one_line(damaged)}."
        notes.append(Note("data", text, remedy="Run the job again to have them made anew."))
    hidden = only_in_csv(parts, rank)
    return Leaderboard(
        tuple(
            replace(column, only_in_csv=True) if column.kind == "metric" and column.key in hidden else column
            for column in with_distinct_titles(make_columns(shown, groups, rows, chosen=chosen is not None))
        ),
        rows,
        sort_by,
        seeds,
        references=tuple(row_of(group, seeds) for group in everything if group.case.role),
        notes=tuple(notes),
        significance=significance,
        over_exams=methods_over_exams(rows, *sort_by[0]) if sort_by else None,
        statements=tuple(filter(None, texts)),
        baseline=rank.baseline,
        contract=contract,
    )


def _with_selection(row: LeaderboardRow, chosen: SelectedResults) -> LeaderboardRow:
    key = row.testenv, row.algorithm
    return replace(
        row, tried=chosen.tried.get(key), status="; ".join(filter(None, (row.status, chosen.marks.get(key))))
    )


def _sort_keys(
    spec: RankSpec, metrics: Sequence[tuple[str, Metric]], parts: Mapping[str, Sequence[str]], scores: Sequence[str]
) -> tuple[tuple[str, bool], ...]:
    """Return the columns to rank by, without scores of several numbers and parts that no case has.

    scores: the columns of all metrics, also of several numbers.
    """
    names = [name for name, _ in metrics]
    keys: list[tuple[str, bool]] = []
    for name, descending in spec.sort_by:
        if name not in names and (name in parts or whole_of(name) in scores):
            continue  # `part_notes` reports it
        keys += [(column, descending) for column in columns_named(name, names)]
        if not columns_named(name, names):
            listed = ", ".join(names) or "none"
            hint = closest(name, names)
            raise ValueError(f"sort_by: '{name}' is not a metric column.{hint} The columns are: {listed}.")
    one_number = [(name, metric) for name, metric in metrics if not whole_of(name)] or metrics
    return tuple(keys) or tuple((name, metric.higher_is_better) for name, metric in one_number[:1])
