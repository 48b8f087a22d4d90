"""How sure the differences between rows are, as a table."""

from __future__ import annotations

from dataclasses import dataclass

from ianvs.results.report import Leaderboard, LeaderboardRow
from ianvs.results.report.layout import varied
from ianvs.results.report.significance_table import standard_errors
from ianvs.results.stats import Difference

__all__ = ["DifferenceTable", "difference_table"]


@dataclass(frozen=True)
class DifferenceTable:
    """One exam's. rows: (name, cells)."""

    exam: str
    note: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def difference_table(leaderboard: Leaderboard, exam: str) -> DifferenceTable | None:
    """By the metric that rows are ranked by; None where no row of the exam has a standing."""
    if not leaderboard.sort_by:
        return None
    metric, _ = leaderboard.sort_by[0]
    rows = [row for row in leaderboard.rows if row.testenv == exam and metric in row.intervals]
    if not any(row.standing for row in rows):
        return None
    baseline = leaderboard.baseline if any(row.to_baseline for row in rows) else None
    heads: tuple[str, ...] = ("Row", metric, "95 % interval", "Error of seeds", "Of samples", "Ranks", "P(best)")
    for other in ("the best", *([baseline] if baseline else [])):
        heads += (f"Less {other}", "95 % interval", "p", "Separated")
    names = varied(leaderboard)
    lines = []
    for row in rows:
        mean = row.metrics[metric].mean
        cells = ["" if mean is None else f"{mean:.4g}", _between(row.intervals[metric].low, row.intervals[metric].high)]
        cells += ["" if error is None else f"{error:.2g}" for error in standard_errors(row, metric)]
        cells += [*_standing(row), *_difference(row.to_best)]
        cells += _difference(row.to_baseline) if baseline else []
        lines.append((row.label(names), tuple(cells)))
    note = (
        "Standard errors are of the mean, by seeds and by test samples. Differences are paired by seed. Intervals are "
        "of one mean or one pair alone; p and the verdict hold for all pairs of the exam together (docs/statistics.md)."
    )
    return DifferenceTable(exam, note, heads, tuple(lines))


def _standing(row: LeaderboardRow) -> list[str]:
    if row.standing is None:
        return ["", ""]
    low, high = row.standing.low, row.standing.high
    return [str(low) if low == high else f"{low}–{high}", f"{row.standing.p_best:.2f}"]


def _difference(found: Difference | None) -> list[str]:
    if found is None:
        return ["", "", "", ""]
    interval = "" if found.low is None or found.high is None else _between(found.low, found.high)
    p = "< 0.001" if found.p < 0.001 else f"{found.p:.3f}"
    return [f"{found.mean:+.4g}".replace("-", "−"), interval, p, "yes" if found.separated else "no"]


def _between(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}".replace("-", "−")
