"""Published numbers beside ours: the cells of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10

from ianvs.config.spec import PublishedSpec
from ianvs.exam.metrics.metric_columns import columns_named
from ianvs.results.report.values import shown_number, signed_number
from ianvs.results.stats import Agreement, Summary, compare

__all__ = ["AGREES", "agreement", "agreement_words", "by_column", "published_summary"]

AGREES = (
    'the verdict (ours - published, its 95 % interval after Welch, in the unit of the column). "equal": the interval '
    'lies inside the margin of the entry, 0.01 unless it names one; else "differs": the interval excludes 0; else '
    '"can\'t tell", and how many seeds of ours could, unless their runs are too few for any number. "no verdict": it '
    "says what is missing, and the interval is of our seeds alone"
)


def by_column(published: Mapping[str, PublishedSpec], columns: Sequence[str]) -> dict[str, PublishedSpec]:
    """What is published of one algorithm, by the columns that its metrics have."""
    return {column: spec for name, spec in published.items() for column in columns_named(name, columns)}


def published_summary(spec: PublishedSpec | None) -> Summary | None:
    """In the unit of our column; n is 0 where it is not known."""
    return None if spec is None else Summary(*spec.in_our_unit()[:2], spec.n or 0)


def agreement(ours: Summary | None, spec: PublishedSpec | None) -> str | None:
    """ "equal (+0.002, -0.005 to 0.009)" or "can't tell (+0.038, -0.029 to 0.105; 31 seeds could)"."""
    theirs = published_summary(spec)
    if ours is None or ours.mean is None or spec is None or theirs is None:
        return None
    margin = spec.in_our_unit()[2]
    found = compare(ours, theirs, margin)
    verdict, aside = agreement_words(found)
    decimals = max(0, 1 - floor(log10(margin)))  # a tenth of the margin
    told = signed_number(found.difference, decimals)
    if found.low is not None and found.high is not None:
        told += f", {shown_number(found.low, decimals)} to {shown_number(found.high, decimals)}"
    return f"{verdict} ({'; '.join(filter(None, (told, aside)))})"


def agreement_words(found: Agreement) -> tuple[str, str]:
    """The verdict, and what a reader must know of it besides."""
    if found.verdict != "can't tell":
        return found.verdict or "no verdict", found.missing
    return found.verdict, "theirs are too few" if found.seeds is None else f"{found.seeds} seeds could"
