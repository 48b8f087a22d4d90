"""Columns of scores that yield several numbers, such as one for each class."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ianvs.base.errors import one_line
from ianvs.config.spec import RankSpec
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_columns import whole_of
from ianvs.results.report.aggregate_cases import RowCases
from ianvs.results.report.document import Note

FEW = 4
"""So many numbers of one score are columns of every report; more are columns of all_rank.csv alone."""

_LISTED = 6  # columns that a note names


def with_part_columns(
    metrics: Sequence[tuple[str, Metric]], rows: Sequence[RowCases]
) -> tuple[list[tuple[str, Metric]], dict[str, tuple[str, ...]]]:
    """Replace scores that yield several numbers by a metric for each of these.

    Args:
        metrics: (column, metric) in order.
        rows: The cases of all rows, with the metrics that they have.

    Returns:
        The same with the parts in place of their scores, and the columns of the parts by score. A score without any
        number of its own is left out.
    """
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    parts = {score: tuple(name for name in names if whole_of(name) == score) for score, _ in metrics}
    parts = {score: columns for score, columns in parts.items() if columns}
    shown = []
    for name, metric in metrics:
        if not metric.mapping and (name not in parts or any(name in row.metrics for row in rows if row.seeds)):
            shown.append((name, metric))
        shown += [(column, replace(metric, mapping=False)) for column in parts.get(name, ())]
    return shown, parts


def only_in_csv(parts: Mapping[str, Sequence[str]], rank: RankSpec) -> set[str]:
    """Return the columns of parts that only all_rank.csv shows: those of a score that has many."""
    sorted_by = {name for name, _ in rank.sort_by}
    return {column for columns in parts.values() if len(columns) > FEW for column in columns} - sorted_by


def part_notes(parts: Mapping[str, Sequence[str]], rank: RankSpec) -> Iterator[Note]:
    """Say where the numbers of such scores are, and what to write where a ranking asks for one."""
    for score, columns in parts.items():
        if len(columns) > FEW:
            where = f"{score} has {len(columns)} numbers: the columns {columns[0]} to {columns[-1]} of all_rank.csv."
            yield Note("parts", where)
    for name, _ in rank.sort_by:
        score = name if name in parts else whole_of(name)
        if score in parts and name not in parts[score]:
            wrong = f"sort_by names '{name}', and {score} has {len(parts[score])} numbers: it was left out."
            yield Note("settings", wrong, remedy=f"Write one of them: {one_line(parts[score], _LISTED)}.")
