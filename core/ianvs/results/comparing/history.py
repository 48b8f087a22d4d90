"""A metric from one workspace to the next, over commits or the days on which they ran: as text, data and a picture."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ianvs.base.errors import IanvsError
from ianvs.results.comparing.comparison import meant
from ianvs.results.comparing.comparison_text import table
from ianvs.results.comparing.pairing import changes, pair_rows
from ianvs.results.comparing.sides import SideRow, side_of
from ianvs.results.report.charts.lines import places_chart
from ianvs.results.report.charts.shown_rows import legend_sample
from ianvs.results.report.charts.svg import LineStyle, line_styles
from ianvs.results.report.document import Picture
from ianvs.results.report.gather import utc
from ianvs.results.report.pictures import grid, standalone
from ianvs.results.report.ranking_table import mean_and_spread
from ianvs.results.report.values import Value, cell_text, telling
from ianvs.results.stats import Summary
from ianvs.results.stored import Results
from ianvs.results.stored.provenance import output_of
from ianvs.store import CaseStore, write_atomic

_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True)
class Point:
    """One workspace. commit: what its cases ran with, "" where no git repository was there; moment: what it is put in
    order by, the time of the commit or when its last case ended."""

    name: str
    commit: str
    changed: bool  # with changes that were not committed
    moment: datetime | None

    @property
    def label(self) -> str:
        """ "3fa2b1c+" with uncommitted changes; without a commit the name of the workspace."""
        return f"{self.commit[:7]}{'+' if self.changed else ''}" if self.commit else self.name


@dataclass(frozen=True)
class HistoryLine:
    """One algorithm in one exam, through settings that changed. values: one for each point; None where it lacks a mean.

    settings: the newest, those in which lines of one algorithm differ, or that changed. changed: "strength 1 -> 10 in
    WORKSPACE".
    """

    algorithm: str
    testenv: str
    settings: str
    values: tuple[Summary | None, ...]
    changed: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """ "ewc strength=100", where its exam is told apart."""
        return f"{self.algorithm} {self.settings}".strip()


@dataclass(frozen=True)
class History:
    """by_commit: in the order of commits; else of when they ran."""

    metric: str
    higher_is_better: bool | None
    points: tuple[Point, ...]
    lines: tuple[HistoryLine, ...]
    by_commit: bool

    def as_dict(self) -> dict[str, object]:
        """Ready for json."""
        return {
            "metric": self.metric,
            "higher_is_better": self.higher_is_better,
            "order": "commits" if self.by_commit else "time",
            "records": list(self.records()),
        }

    def records(self) -> Iterator[dict[str, Value]]:
        """One for each row and workspace."""
        for line in self.lines:
            for point, value in zip(self.points, line.values, strict=True):
                yield {
                    "algorithm": line.algorithm,
                    "testenv": line.testenv,
                    "hyperparameters": line.settings,
                    "workspace": point.name,
                    "commit": point.commit,
                    "dirty": point.changed,
                    "moment": point.moment.isoformat() if point.moment else None,
                    "metric": self.metric,
                    "mean": value.mean if value else None,
                    "std": value.std if value else None,
                    "n": value.n if value else 0,
                }


def history_of(jobs: Sequence[tuple[str, Results]], metric: str | None = None) -> History:
    """jobs: (name, results). metric: a column; None: what the first job is ranked by.

    In the order of commits where every workspace names one that the repository of the working directory knows; else in
    the order in which they ran. Workspaces of the same commit stay apart. Raises IanvsError for fewer than two jobs,
    and for a metric that none has.
    """
    if len(jobs) < 2:
        raise IanvsError("a history needs two workspaces, or more.", code="invalid-argument")
    columns: dict[str, bool | None] = {}  # key: whether higher is better, as the first job says that has it
    for _, results in jobs:
        for column in results.leaderboard.columns:
            if column.kind == "metric":
                columns.setdefault(column.key, column.higher_is_better)
    name, by = jobs[0][0], jobs[0][1].leaderboard.sort_by
    if metric is None and not by:
        raise IanvsError(
            f"{name} is ranked by no metric. Give --metric. There are: {', '.join(columns)}.", code="unknown-metric"
        )
    shown = by[0][0] if metric is None else meant(metric, columns)[0]
    points = [_point(name, results) for name, results in jobs]
    times = _commit_times(point.commit for point in points)
    by_commit = all(point.commit in times for point in points)
    moments = [times[point.commit] if by_commit else point.moment for point in points]
    never = datetime.max.replace(tzinfo=UTC)
    order = sorted(range(len(jobs)), key=lambda i: (moments[i] or never, points[i].moment or never))
    traces = _traces([(points[i].label, *jobs[i]) for i in order], shown)
    placed = (Point(points[i].name, points[i].commit, points[i].changed, moments[i]) for i in order)
    return History(shown, columns.get(shown), tuple(placed), tuple(_lines(traces)), by_commit)


def _point(name: str, results: Results) -> Point:
    """The commit of the case that ended last: cases that finished before may be of an older one."""
    store = CaseStore(results.workspace)
    ended = [
        (utc(found["finished_at"]), found.get("provenance", {}))
        for case in results.case_list
        if (found := store.result(case.id) or {}).get("finished_at")
    ]
    moment, provenance = max(ended, key=lambda one: one[0]) if ended else (None, results.provenance)
    git: Mapping[str, Any] = provenance.get("git") or {}  # type: ignore[assignment]
    commit = str(git.get("commit") or "")
    return Point(name, commit if _COMMIT.fullmatch(commit) else "", bool(git.get("dirty")), moment)


def _commit_times(commits: Iterable[str]) -> dict[str, datetime]:
    """Of those that the git repository of the working directory knows."""
    found = {}
    for commit in dict.fromkeys(filter(None, commits)):
        told = output_of(["git", "--no-optional-locks", "show", "--no-patch", "--format=%ct", commit])
        with suppress(ValueError):
            found[commit] = datetime.fromtimestamp(int(told or ""), UTC)
    return found


@dataclass(eq=False)
class _Trace:
    """A row through the workspaces. newest: as the last of them has it, settings: its hyperparameters there."""

    newest: SideRow
    settings: dict[str, str]
    values: list[Summary | None]
    earlier: list[dict[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def _traces(jobs: Sequence[tuple[str, str, Results]], metric: str) -> list[_Trace]:
    """jobs: (label, name, results), in order. Rows are paired as `ianvs compare` does, each with the newest so far."""
    traces: list[_Trace] = []
    for place, (label, name, results) in enumerate(jobs):
        side = side_of(name, results)
        of_row = {id(ours): theirs for ours, theirs in zip(side.rows, results.leaderboard.rows, strict=True)}
        known = replace(side, rows=tuple(trace.newest for trace in traces))
        pairs, _, new = pair_rows(known, side)
        found = {id(pair.before): pair.after for pair in pairs}
        going_on = [(trace, found[id(trace.newest)]) for trace in traces if id(trace.newest) in found]
        begun = [_Trace(row, {}, [None] * len(jobs)) for row in new]
        for first, trace, row in [
            *((False, *one) for one in going_on),
            *((True, trace, trace.newest) for trace in begun),
        ]:
            there = of_row[id(row)]
            settings = {name: cell_text(value) for name, value in sorted(there.hyperparameters.items())}
            if not first and settings != trace.settings:
                trace.earlier.append(trace.settings)
                trace.changed += [f"{change} in {label}" for change in changes(trace.settings, settings)]
            trace.newest, trace.settings = row, settings
            value = there.metrics.get(metric)
            trace.values[place] = value if value is not None and value.mean is not None else None
        traces += begun
    return traces


def _lines(traces: Sequence[_Trace]) -> Iterable[HistoryLine]:
    """Of the hyperparameters those are told in which lines of one algorithm differ, or that changed."""
    seen: dict[tuple[str, str], list[dict[str, str]]] = {}
    for trace in traces:
        seen.setdefault((trace.newest.algorithm, trace.newest.testenv), []).extend((trace.settings, *trace.earlier))
    for trace in traces:
        names = telling(seen[trace.newest.algorithm, trace.newest.testenv])
        told = ", ".join(f"{name}={text}" for name, text in trace.settings.items() if name in names)
        yield HistoryLine(trace.newest.algorithm, trace.newest.testenv, told, tuple(trace.values), tuple(trace.changed))


def history_text(history: History) -> str:
    """A column for each workspace; a note says how they are ordered."""
    better = {True: " (higher is better)", False: " (lower is better)", None: ""}[history.higher_is_better]
    several = any(line.testenv for line in history.lines)
    head = [*(["Testenv"] if several else []), "Algorithm", *(point.label for point in history.points)]
    cells = ([line.label, *(mean_and_spread(value, 3) for value in line.values)] for line in history.lines)
    rows = [[line.testenv, *row] if several else row for line, row in zip(history.lines, cells, strict=True)]
    order = "the commits' times" if history.by_commit else "when their last cases ended"
    notes = [f"{history.metric}{better}, mean ± sample standard deviation over seeds; in the order of {order}:"]
    for point in history.points:
        when = point.moment.strftime(", %Y-%m-%d %H:%M UTC") if point.moment else ""
        notes.append(f"  {point.label}: {point.name}{when}")
    notes += [f"{line.label}: {', '.join(line.changed)}." for line in history.lines if line.changed]
    if any(point.changed for point in history.points):
        notes.append("+: with changes that were not committed.")
    return "\n".join([table(head, rows), "", *notes])


def draw_history(history: History, file: Path) -> Path:
    """Write it to `file`; the same history makes the same bytes. Raises IanvsError where its suffix is not .svg."""
    if file.suffix != ".svg":
        raise IanvsError(
            f"'{file}' can't be drawn: the name of a picture ends in .svg. rsvg-convert, Inkscape or cairosvg "
            "make PNG or PDF of that.",
            code="invalid-argument",
        )
    write_atomic(file, standalone(history_picture(history)).encode())
    return file


def history_picture(history: History) -> Picture:
    """Exams below each other; a row has one line style in all of them, and no two rows look the same."""
    labels = list(dict.fromkeys(line.label for line in history.lines))
    styles = dict(zip(labels, line_styles((label, False) for label in labels), strict=True))
    of_exams: dict[str, list[HistoryLine]] = {}
    for line in history.lines:
        of_exams.setdefault(line.testenv, []).append(line)
    charts = [(exam, _chart(f"h{n}", history, lines, styles)) for n, (exam, lines) in enumerate(of_exams.items())]
    title = f"{history.metric} over {'commits' if history.by_commit else 'time'}"
    legend = [{"label": label, "sample": legend_sample(style)} for label, style in styles.items()]
    return Picture(
        "history", title, grid(charts, 1), "Bars are one standard deviation over seeds to each side.", legend
    )


def _chart(key: str, history: History, lines: Sequence[HistoryLine], styles: Mapping[str, LineStyle]) -> Markup:
    known: list[tuple[LineStyle, list[tuple[int, float, float]]]] = []
    for line in lines:
        means = ((at, value.mean, value.std or 0.0) for at, value in enumerate(line.values) if value is not None)
        there = [(at, mean, std) for at, mean, std in means if mean is not None and isfinite(mean)]
        known.append((styles[line.label], there))
    better = {True: ", higher is better", False: ", lower is better", None: ""}[history.higher_is_better]
    labels = [point.label for point in history.points]
    about = f"{len(lines)} lines over {len(labels)} workspaces; the table of `ianvs history` holds their numbers."
    return places_chart(key, known, labels, f"{history.metric}{better}", history.metric, about)
