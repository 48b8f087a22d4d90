"""Published numbers beside ours: the cells of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ianvs.config.spec import PublishedSpec
from ianvs.metrics.metric_columns import columns_named
from ianvs.report.values import signed_number
from ianvs.stats import SINGLE_RUN, Summary, compare

__all__ = ["AGREES", "agreement", "by_column", "published_summary"]

AGREES = (
    '"yes" where the mean of as many more runs of theirs as there are seeds would lie 19 times of 20: |ours - '
    "published| <= t(.975, n - 1) std sqrt(1 / n + 1 / seeds); else by how many published standard deviations ours is "
    f'off. Where n is not known, "yes" is within {SINGLE_RUN:g} std of one run; where std is not, ours - '
    "published stands alone"
)


def by_column(published: Mapping[str, PublishedSpec], columns: Sequence[str]) -> dict[str, PublishedSpec]:
    """What is published of one algorithm, by the columns that its metrics have."""
    return {column: spec for name, spec in published.items() for column in columns_named(name, columns)}


def published_summary(spec: PublishedSpec | None) -> Summary | None:
    """In the unit of our column; n is 0 where it is not known."""
    return None if spec is None else Summary(*spec.in_our_unit(), spec.n or 0)


def agreement(ours: Summary | None, spec: PublishedSpec | None) -> str | None:
    """ "yes", "no, +2.3 std", or the difference alone; None where there is nothing to compare."""
    if ours is None or ours.mean is None or spec is None:
        return None
    theirs, std = spec.in_our_unit()
    found = compare(ours.mean, ours.n, theirs, std, spec.n)
    if found.in_stds is None:
        return signed_number(found.difference, 3)
    if not found.agrees:
        return f"no, {signed_number(found.in_stds, 1)} std"
    return "yes" if found.runs_known else f"yes, within {SINGLE_RUN:g} std"
