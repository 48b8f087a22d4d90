"""A comparison as text for people, and as files for machines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ianvs.results.comparing.comparison import Change, ComparedRow, Comparison, SideComparison
from ianvs.results.comparing.sides import SideRow
from ianvs.results.report.document import text_table
from ianvs.results.report.markdown import aligned
from ianvs.results.report.row_tables import csv_of
from ianvs.results.report.values import Value, decimals_for, differing_settings, signed_number

_MOST = 6  # maximum number of listed differences of a row


def comparison_text(comparison: Comparison) -> str:
    """Return, for each side, a table of cases, a table of changes, and a summary."""
    return "\n\n".join("\n\n".join(_blocks(contrast)) for contrast in comparison.contrasts)


def records_csv(records: Iterable[Mapping[str, Value]]) -> str:
    """Return csv with a line for each record, all with the same keys; a missing number is blank."""
    records = list(records)
    return csv_of([list(record) for record in records[:1]] + [list(record.values()) for record in records])


def _blocks(contrast: SideComparison) -> Iterator[str]:
    yield f"{contrast.first.name} -> {contrast.other.name}"
    common, names = _common(contrast.rows), _names(contrast.rows)
    if contrast.rows:
        lines = [_case_line(name, row, common) for name, row in zip(names, contrast.rows, strict=True)]
        yield table(["Row", "Same cases", "Differs in"], lines)
    if common:
        yield f"In all rows that correspond: {'; '.join(common)}."
    pairs = zip(names, contrast.rows, strict=True)
    lines = [_change_line(name, change) for name, row in pairs for change in row.changes if change.verdict != "equal"]
    if lines:
        head = ["Row", "Metric", contrast.first.name, contrast.other.name, "Difference", "95 % interval", "Seeds", ""]
        yield table(head, lines)
    yield "\n".join(_summary(contrast))


def _summary(contrast: SideComparison) -> Iterator[str]:
    changes = [change for row in contrast.rows for change in row.changes]
    if not contrast.rows:
        yield "No rows correspond: no algorithm of the one is in the other, in the same exam."
    elif changes and all(change.verdict == "equal" for change in changes):
        yield "Every metric of every row that corresponds is the same."
    elif changes:
        counts = {text: sum(_verdict(change) == text for change in changes) for text in map(_verdict, changes)}
        yield f"Of {len(changes)} numbers: {', '.join(f'{count} {text}' for text, count in counts.items())}."
    if any("not separated" in _verdict(change) for change in changes):
        yield "Not separated: the 95 % interval (Student's t, paired by seed) contains 0, or there is no interval."
    if any(change.pairs == 0 and change.difference is not None for change in changes):
        yield "Seeds -: a difference of two means whose seeds are unknown or not the same (Welch's t)."
    for name, rows in ((contrast.first.name, contrast.only_first), (contrast.other.name, contrast.only_other)):
        if rows:
            yield f"Only in {name}: {'; '.join(row.name for row in rows)}."


def _names(rows: Sequence[ComparedRow]) -> list[str]:
    """Return the names of rows with the hyperparameters in which rows of one algorithm differ."""
    every = [row.pair.before for row in rows]

    def name(row: SideRow) -> str:
        names = differing_settings(
            [r.settings for r in every if (r.algorithm, r.testenv) == (row.algorithm, row.testenv)]
        )
        return replace(row, settings={title: value for title, value in row.settings.items() if title in names}).name

    return [name(row) for row in every]


def _common(rows: Sequence[ComparedRow]) -> list[str]:
    """Return the differences that all rows share, if there are several."""
    if len(rows) < 2:
        return []
    return [difference for difference in rows[0].pair.differs if all(difference in row.pair.differs for row in rows)]


def _case_line(name: str, row: ComparedRow, common: Sequence[str]) -> list[str]:
    pair = row.pair
    same = f"{len(pair.same)} of {len(pair.seeds)}" if pair.seeds else "-"
    differences = [difference for difference in pair.differs if difference not in common]
    more = f"; and {len(differences) - _MOST} more" if len(differences) > _MOST else ""
    if not pair.seeds and not differences:
        return [name, same, "not known: of a report, or no seed in common"]
    return [name, same, "; ".join(differences[:_MOST]) + more]


def _change_line(name: str, change: Change) -> list[str]:
    means = ["" if mean is None else f"{mean:.4g}" for mean in (change.before, change.after)]
    by = where = ""
    if change.difference is not None:
        low, high = change.difference.low, change.difference.high
        by = f"{change.difference.mean:+.3g}"
        if low is not None and high is not None:
            digits = decimals_for((high - low) / 2)
            by, *ends = (signed_number(value, digits) for value in (change.difference.mean, low, high))
            where = " to ".join(ends)
    return [name, change.metric, *means, by, where, str(change.pairs or "-"), _verdict(change)]


def _verdict(change: Change) -> str:
    difference = change.difference
    if difference is None or change.verdict == "equal" or difference.separated:
        return change.verdict
    return f"{change.verdict}, not separated"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for a terminal."""
    return aligned(text_table("numbers", head, rows).columns)
