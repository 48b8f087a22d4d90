"""A metric from one workspace to the next, over commits or the days on which they ran: as text, data and a picture."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ianvs.base.errors import IanvsError
from ianvs.results.comparing.comparison import meant
from ianvs.results.comparing.comparison_text import table
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

_Key = tuple[str, str, tuple[tuple[str, str], ...]]  # algorithm, testenv, hyperparameters
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
    """One algorithm with its hyperparameters in one exam. values: one for each point; None where it lacks a mean."""

    algorithm: str
    testenv: str
    settings: str
    values: tuple[Summary | None, ...]

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
        raise IanvsError("a history needs two workspaces, or more.")
    columns: dict[str, bool | None] = {}  # key: whether higher is better, as the first job says that has it
    for _, results in jobs:
        for column in results.leaderboard.columns:
            if column.kind == "metric":
                columns.setdefault(column.key, column.higher_is_better)
    name, by = jobs[0][0], jobs[0][1].leaderboard.sort_by
    if metric is None and not by:
        raise IanvsError(f"{name} is ranked by no metric. Give --metric. There are: {', '.join(columns)}.")
    shown = by[0][0] if metric is None else meant(metric, columns)[0]
    points = [_point(name, results) for name, results in jobs]
    times = _commit_times(point.commit for point in points)
    by_commit = all(point.commit in times for point in points)
    moments = [times[point.commit] if by_commit else point.moment for point in points]
    never = datetime.max.replace(tzinfo=UTC)
    order = sorted(range(len(jobs)), key=lambda i: (moments[i] or never, points[i].moment or never))
    rows: dict[_Key, list[Summary | None]] = {}
    for place, i in enumerate(order):
        for row in jobs[i][1].leaderboard.rows:
            settings = tuple(sorted((name, cell_text(value)) for name, value in row.hyperparameters.items()))
            line = rows.setdefault((row.algorithm, row.testenv, settings), [None] * len(jobs))
            found = row.metrics.get(shown)
            line[place] = found if found is not None and found.mean is not None else None
    placed = (Point(points[i].name, points[i].commit, points[i].changed, moments[i]) for i in order)
    return History(shown, columns.get(shown), tuple(placed), tuple(_lines(rows)), by_commit)


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


def _lines(rows: Mapping[_Key, Sequence[Summary | None]]) -> Iterable[HistoryLine]:
    """Of the hyperparameters those are told in which lines of one algorithm differ."""
    for (algorithm, testenv, settings), values in rows.items():
        names = telling([dict(other) for name, exam, other in rows if (name, exam) == (algorithm, testenv)])
        told = ", ".join(f"{name}={text}" for name, text in settings if name in names)
        yield HistoryLine(algorithm, testenv, told, tuple(values))


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
    if any(point.changed for point in history.points):
        notes.append("+: with changes that were not committed.")
    return "\n".join([table(head, rows), "", *notes])


def draw_history(history: History, file: Path) -> Path:
    """Write it to `file`; the same history makes the same bytes. Raises IanvsError where its suffix is not .svg."""
    if file.suffix != ".svg":
        raise IanvsError(
            f"'{file}' can't be drawn: the name of a picture ends in .svg. rsvg-convert, Inkscape or cairosvg "
            "make PNG or PDF of that."
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
