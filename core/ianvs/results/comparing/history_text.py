"""A history as a table, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator

from ianvs.results.comparing.comparison_text import records_csv, table
from ianvs.results.comparing.history import History
from ianvs.results.report.values import shown_number
from ianvs.results.stats import Summary

__all__ = ["history_csv", "history_dict", "history_text"]


def history_text(history: History) -> str:
    """A column for each workspace; a note says how they are ordered."""
    better = {True: " (higher is better)", False: " (lower is better)", None: ""}[history.higher_is_better]
    several = any(line.testenv for line in history.lines)
    head = [*(["Testenv"] if several else []), "Algorithm", *(point.label for point in history.points)]
    rows = [[*([line.testenv] if several else []), line.label, *map(_cell, line.values)] for line in history.lines]
    order = "the commits' times" if history.by_commit else "when their last cases ended"
    notes = [f"{history.metric}{better}, mean ± sample standard deviation over seeds; in the order of {order}:"]
    for point in history.points:
        when = point.moment.strftime(", %Y-%m-%d %H:%M UTC") if point.moment else ""
        notes.append(f"  {point.label}: {point.name}{when}")
    if any(point.changed for point in history.points):
        notes.append("+: with changes that were not committed.")
    return "\n".join([table(head, rows), "", *notes])


def history_csv(history: History) -> str:
    """One line for each row and workspace."""
    return records_csv(_records(history))


def history_dict(history: History) -> dict[str, object]:
    """Ready for json."""
    return {
        "metric": history.metric,
        "higher_is_better": history.higher_is_better,
        "order": "commits" if history.by_commit else "time",
        "records": list(_records(history)),
    }


def _records(history: History) -> Iterator[dict[str, object]]:
    for line in history.lines:
        for point, value in zip(history.points, line.values, strict=True):
            yield {
                "algorithm": line.algorithm,
                "testenv": line.testenv,
                "hyperparameters": line.settings,
                "workspace": point.name,
                "commit": point.commit,
                "dirty": point.changed,
                "moment": point.moment.isoformat() if point.moment else None,
                "metric": history.metric,
                "mean": value.mean if value else None,
                "std": value.std if value else None,
                "n": value.n if value else 0,
            }


def _cell(value: Summary | None) -> str:
    if value is None or value.mean is None:
        return ""
    mean = shown_number(value.mean, 3)
    return mean if value.std is None else f"{mean} ± {shown_number(value.std, 3)}"
