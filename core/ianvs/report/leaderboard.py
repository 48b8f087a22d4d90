"""Results of cases -> a ranked leaderboard: one row per algorithm and hyperparameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from ianvs.config.spec import PublishedSpec, RankSpec
from ianvs.errors import closest, one_line
from ianvs.metrics.metric import Metric
from ianvs.metrics.metric_columns import columns_named
from ianvs.report.columns import COSTS, Column, make_columns
from ianvs.report.gather import FailedCase, RowCases, common_name, gather
from ianvs.report.published import agreement, by_column, published_summary
from ianvs.report.sealing_note import sealing_note
from ianvs.report.values import Cell, shown_hyperparameters
from ianvs.stats.summary import Summary, rank, summarise
from ianvs.types import CaseResult

__all__ = ["Leaderboard", "LeaderboardRow", "build_leaderboard"]

_SHORT = 100  # characters of an error message in the Status column


@dataclass(frozen=True)
class LeaderboardRow:
    """One algorithm with one choice of hyperparameters; its cases are repetitions with different seeds.

    A row that lacks a case has neither a rank nor a mean: what happens to be finished is not comparable.
    """

    id: str
    algorithm: str
    paradigm: str
    rounds: int
    dataset: str
    modules: Mapping[str, str]
    hyperparameters: Mapping[str, Cell]  # secrets are hidden already
    seeds: tuple[int, ...]  # of the cases that finished
    expected: int  # how many cases belong to the row
    metrics: Mapping[str, Summary]  # by column name; empty when a case is missing
    costs: Mapping[str, Summary]  # by key of COSTS; empty when a case is missing
    tests: Mapping[str, tuple[str, Summary, Summary]]  # by test set: (score, when just learned, at the end)
    bound: bool  # a reference: it saw past rounds by declaration, or all of them at once
    failures: tuple[FailedCase, ...]
    status: str
    time: str  # "YYYY-MM-DD HH:MM:SS" UTC, "" when no case has ended
    testenv: str = ""  # which of the job's testenvs, where it has several
    adopted: tuple[int, int] | None = None  # rounds whose new model passed the gate, and all; None: there is no gate
    over_budget: tuple[str, ...] = ()  # what went over the exam's budget, in words
    urls: tuple[str, ...] = ()  # folders of its cases, relative to the workspace
    texts: Mapping[str, str] = field(default_factory=dict)  # by column name, values of metrics that are no numbers
    remarks: Mapping[int, str] = field(default_factory=dict)  # what its plugin says of how it went, by seed
    published: Mapping[str, PublishedSpec] = field(default_factory=dict)  # by column name
    rank: int | None = None  # None: no competitor, a case is missing, or there is nothing to rank it by

    @property
    def complete(self) -> bool:
        return len(self.seeds) == self.expected

    @property
    def competes(self) -> bool:
        """Whether it played by the rules that the others kept."""
        return not self.bound and not self.over_budget


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
    contract: str = "native"  # "ianvs": of plugins that were called as KubeEdge Ianvs calls them

    @property
    def failures(self) -> tuple[tuple[LeaderboardRow, FailedCase], ...]:
        """Every failed case with its row, those of reference runs too."""
        return tuple((row, failure) for row in (*self.rows, *self.references) for failure in row.failures)

    def cell(self, row: LeaderboardRow, column: Column) -> Cell:
        """The value of one cell, typed; None is blank."""
        match column.kind:
            case "rank":
                if not row.complete:
                    return "-"
                return "bound" if row.bound else "over" if row.over_budget else "-" if row.rank is None else row.rank
            case "testenv":
                return row.testenv
            case "algorithm":
                return row.algorithm
            case "metric" | "metric_std":
                summary = row.metrics.get(column.key)
                if column.kind == "metric" and column.key in row.texts:
                    return row.texts[column.key]
                return None if summary is None else summary.mean if column.kind == "metric" else summary.std
            case "published" | "published_std":
                theirs = published_summary(row.published.get(column.key))
                return None if theirs is None else theirs.mean if column.kind == "published" else theirs.std
            case "agrees":
                return agreement(row.metrics.get(column.key), row.published.get(column.key))
            case "paradigm":
                return row.paradigm
            case "round":
                return row.rounds
            case "dataset":
                return row.dataset
            case "module":
                return row.modules.get(column.key)
            case "hyperparameter":
                return row.hyperparameters.get(column.key)
            case "adopted":
                return None if row.adopted is None else f"{row.adopted[0]} of {row.adopted[1]}"
            case "seeds":
                return len(row.seeds)
            case "cost":
                cost = row.costs.get(column.key)
                return None if cost is None else cost.mean
            case "status":
                return row.status
            case "time":
                return row.time or None
            case "url":
                return ", ".join(row.urls)

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


def build_leaderboard(
    results: Iterable[CaseResult],
    rank: RankSpec,
    metrics: Sequence[Metric],
    metric_columns: Sequence[str],
    seeds: int,
    root: Path | None = None,
    published: Mapping[str, Mapping[str, PublishedSpec]] = MappingProxyType({}),
) -> Leaderboard:
    """The leaderboard of `results`, which are read once and not kept: memory grows with rows, not with score matrices.

    results: in the order of the plan, which fixes the order of columns and of rows that tie.
    metrics, metric_columns: the testenv's metrics in order, and the name of each one's column. A metric that yields
    several numbers (per class) has no column. seeds: how many cases belong to a row.
    root: paths of logs are shown relative to it, so that a report reads the same wherever it is written from.
    published: what others published, by algorithm and metric.
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
    rows = _by_testenv(listed, sort_by)
    columns = make_columns(
        shown,
        modules=(kind for group in groups for kind, _ in group.case.modules),
        hyperparameters=(name for group in groups for name in group.case.hyperparameters),
        several=any(group.case.testenv for group in groups),
        gated=any(row.adopted is not None for row in rows),
        measured=(key for key in COSTS for row in rows if key in row.costs and row.costs[key].mean is not None),
        published={name for row in rows for name in row.published},
        measures={name: measure for group in groups for name, measure in group.measures.items()},
    )
    notes = tuple(dict.fromkeys(note for group in groups for note in group.notes))
    if damaged := tuple(dict.fromkeys(path for group in everything for path in group.damaged)):
        told = "Gone, or changed after they were stored, and therefore not believed"
        notes += (f"{told}: {one_line(damaged)}. Run the job again to have them made anew.",)
    sealing = sealing_note({one for group in groups for one in group.sealings})
    shown_metrics = tuple(metric for _, metric in shown)
    return Leaderboard(columns, rows, shown_metrics, sort_by, seeds, references, notes, sealing)


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
    metrics = {name: summarise(values) for name, values in group.metrics.items()} if complete else {}
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


def _by_testenv(rows: list[LeaderboardRow], sort_by: Sequence[tuple[str, bool]]) -> tuple[LeaderboardRow, ...]:
    """The ranking of each exam, in the order of the exams."""
    exams = dict.fromkeys(row.testenv for row in rows)
    return tuple(row for exam in exams for row in _ranked(_bounded([r for r in rows if r.testenv == exam]), sort_by))


def _bounded(rows: list[LeaderboardRow]) -> list[LeaderboardRow]:
    """A row that learned in one round what others of its exam learn in several is a bound; among its like it is not."""
    several = any(row.rounds > 1 for row in rows)
    return [replace(row, bound=row.bound or (several and row.rounds == 1)) for row in rows]


def _ranked(rows: list[LeaderboardRow], sort_by: Sequence[tuple[str, bool]]) -> tuple[LeaderboardRow, ...]:
    """Complete rows by `sort_by`, then those with nothing to rank them by, then those that lack a case."""
    descending = [falls for _, falls in sort_by]

    def keys(row: LeaderboardRow) -> list[float | None]:
        return [row.metrics[name].mean if name in row.metrics else None for name, _ in sort_by]

    def ranked(row: LeaderboardRow) -> bool:
        return row.complete and any(value is not None for value in keys(row))

    placed = [row for row in rows if ranked(row)]
    placed = [placed[i] for i in rank([keys(row) for row in placed], descending).order]
    competing = [row for row in placed if row.competes]
    ranks = iter(rank([keys(row) for row in competing], descending).ranks)
    placed = [replace(row, rank=next(ranks)) if row.competes else row for row in placed]
    unranked = [row for row in rows if row.complete and not ranked(row)]
    return (*placed, *unranked, *(row for row in rows if not row.complete))
