"""What became of one metric of a row: paired over seeds where both are known seed by seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from ianvs.base.errors import IanvsError, closest
from ianvs.exam.metrics.metric_columns import columns_named
from ianvs.results.comparing.pairing import RowPair
from ianvs.results.stats import Difference, Summary, paired_difference, unpaired_difference

__all__ = ["Change", "change_of", "meant"]

LEVEL = 0.95

Verdict = Literal["better", "worse", "equal", "other", "lost", "new"]


@dataclass(frozen=True)
class Change:
    """A metric of a row in the one and in the other.

    before, after: means over the seeds that are compared; None where a side has none. pairs: the number of seeds that
    both have and that the difference is paired over; 0: it is between means of other seeds, or of a report.
    difference: after - before, with its interval. higher_is_better: None where nobody knows.
    """

    metric: str
    before: float | None
    after: float | None
    pairs: int
    difference: Difference | None
    higher_is_better: bool | None

    @property
    def verdict(self) -> Verdict:
        """By sign alone; `difference.separated` says whether chance explains it. "other": no direction is known."""
        if self.difference is None:
            return "new" if self.before is None else "lost"
        if self.difference.mean == 0:
            return "equal"
        if self.higher_is_better is None:
            return "other"
        return "better" if (self.difference.mean > 0) == self.higher_is_better else "worse"

    @property
    def worse_by(self) -> float:
        """How much worse it became, in the unit of the metric; below 0: better. inf: it has no value any more."""
        if self.difference is None:
            return float("inf") if self.after is None else float("-inf")
        return -self.difference.mean if self.higher_is_better else self.difference.mean


def change_of(pair: RowPair, metric: str, higher_is_better: bool | None) -> Change | None:
    """None where neither has a value."""
    before, after = pair.before, pair.after
    old, new = (dict(zip(row.seeds, row.values.get(metric, ()), strict=False)) for row in (before, after))
    both = [(x, y) for seed, x in old.items() if _known(x) and _known(y := new.get(seed))]
    if both:
        first, second = zip(*both, strict=True)
        difference = paired_difference(second, first, LEVEL)
        return Change(metric, sum(first) / len(both), sum(second) / len(both), len(both), difference, higher_is_better)
    means = [row.means.get(metric, Summary(None, None, 0)) for row in (before, after)]
    if means[0].mean is None and means[1].mean is None:
        return None
    return Change(metric, means[0].mean, means[1].mean, 0, unpaired_difference(means[1], means[0]), higher_is_better)


def meant(metric: str, columns: Iterable[str]) -> list[str]:
    """Those of `columns` that a user means by `metric`. Raises IanvsError if there are none."""
    known = list(dict.fromkeys(columns))
    if not (found := columns_named(metric, known)):
        raise IanvsError(f"metric '{metric}' is not known here.{closest(metric, known)} There are: {', '.join(known)}.")
    return found


def _known(value: float | None) -> bool:
    return value is not None and isfinite(value)
