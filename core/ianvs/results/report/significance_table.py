"""How sure each row is, as a table to read and as one to compute with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import sqrt

from ianvs.results.report.layout import shown_rank, tabulated, varied
from ianvs.results.report.leaderboard import Leaderboard
from ianvs.results.report.leaderboard_row import LeaderboardRow
from ianvs.results.report.values import Cell, shown_number, signed_number
from ianvs.results.stats import Difference

__all__ = ["standard_errors", "statistics_records", "significance_table"]

_HEADER = (
    *("Testenv", "Algorithm", "Hyperparameters", "Metric", "n", "mean", "std", "low", "high"),
    *("error_of_seeds", "error_of_samples"),
    *(f"minus_{other}{part}" for other in ("best", "baseline") for part in ("", "_low", "_high", "_p")),
)


def significance_table(leaderboard: Leaderboard, escape: Callable[[str], str]) -> str:
    """Markdown: intervals and differences of the metric that exams are ranked by. escape: of what names may hold."""
    metric = leaderboard.significance[0].metric
    telling = varied(leaderboard)
    rows = [row for row in leaderboard.rows if metric in row.intervals]
    columns: list[tuple[str, Callable[[LeaderboardRow], str]]] = [
        ("Rank", lambda row: shown_rank(row, row.place)),
        ("Tier", lambda row: row.standing.tier if row.standing else ""),
        ("Testenv", lambda row: row.testenv),
        ("Algorithm", lambda row: row.algorithm),
        ("Hyperparameters", lambda row: row.settings(telling)),
        (metric, lambda row: _number(row.metrics[metric].mean)),
        ("95 % interval", lambda row: f"{_number(row.intervals[metric].low)} to {_number(row.intervals[metric].high)}"),
        ("Error of seeds", lambda row: _number(standard_errors(row, metric)[0])),
        ("of samples", lambda row: _number(standard_errors(row, metric)[1])),
        ("P(best)", lambda row: f"{row.standing.p_best:.2f}" if row.standing else ""),
        ("Minus the best", lambda row: _difference(row.to_best)),
        ("p", lambda row: _p(row.to_best)),
        (f"Minus {leaderboard.baseline}", lambda row: _difference(row.to_baseline)),
        ("p", lambda row: _p(row.to_baseline)),
    ]
    table = [(title, [cell(row) for row in rows]) for title, cell in columns]
    table = [(title, cells) for title, cells in table if any(cells)]
    said = (
        "Standard errors of the mean, of seeds and of test samples; differences are paired by seed, with the 95 % "
        "interval of each alone; p is adjusted for all pairs (docs/statistics.md)."
    )
    lines = [list(map(escape, line)) for line in zip(*(cells for _, cells in table), strict=True)]
    return f"{escape(said)}\n\n{tabulated([escape(title) for title, _ in table], lines)}"


def statistics_records(leaderboard: Leaderboard) -> Iterator[Sequence[Cell]]:
    """A header, then one line for each row and metric; a difference is of the metric that the exam is ranked by."""
    yield _HEADER
    ranked_by = leaderboard.sort_by[0][0] if leaderboard.sort_by else None
    for row in leaderboard.rows:
        for metric, summary in row.metrics.items():
            interval = row.intervals.get(metric)
            differences = (row.to_best, row.to_baseline) if metric == ranked_by else (None, None)
            yield (
                *(row.testenv, row.algorithm, row.settings(), metric, summary.n, summary.mean, summary.std),
                *((interval.low, interval.high) if interval else (None, None)),
                *standard_errors(row, metric),
                *(cell for one in differences for cell in _cells(one)),
            )


def standard_errors(row: LeaderboardRow, metric: str) -> tuple[float | None, float | None]:
    """Of the mean: as it would vary with other seeds, and with other test samples; None where that is not known."""
    summary, groups = row.metrics[metric], row.samples.get(metric)
    seeds = None if summary.std is None else summary.std / sqrt(summary.n)
    return seeds, None if groups is None else float(groups.std(ddof=1)) / sqrt(len(groups))


def _cells(difference: Difference | None) -> tuple[Cell, ...]:
    if difference is None:
        return (None,) * 4
    return difference.mean, difference.low, difference.high, difference.p


def _difference(found: Difference | None) -> str:
    if found is None:
        return ""
    if found.low is None or found.high is None:
        return signed_number(found.mean, 3)
    mean, low, high = (signed_number(value, 3) for value in (found.mean, found.low, found.high))
    return f"{mean} ({low} to {high})"


def _p(found: Difference | None) -> str:
    return "" if found is None else f"{found.p:.2g}"


def _number(value: float | None) -> str:
    return "" if value is None else shown_number(value, 3)
