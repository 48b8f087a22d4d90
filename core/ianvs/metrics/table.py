"""The metrics in words: rows for `ianvs metrics`, and the lines below a leaderboard that say which definition it is."""

from __future__ import annotations

from collections.abc import Iterable

from ianvs.metrics.metric import Metric
from ianvs.metrics.registry import METRICS, find

__all__ = ["describe", "legend"]


def describe() -> list[dict[str, str | tuple[str, ...]]]:
    """One row for each built-in metric: name, level, better, formula, source, aliases, needs, summary."""
    return [
        {
            "name": metric.name,
            "level": metric.level,
            "better": _direction(metric),
            "formula": metric.formula,
            "source": metric.source,
            "aliases": metric.aliases,
            "needs": metric.needs,
            "summary": metric.summary,
        }
        for metric in METRICS
    ]


def legend(names: Iterable[str], custom: Iterable[Metric] = ()) -> list[str]:
    """One line for each column of a leaderboard that is a metric, in their order: which definition it is.

    names: as the columns are headed, so maybe an alias. custom: the metrics that come from files; they go before
    built-ins of the same name. A name that is neither is left out.
    """
    own = {metric.name: metric for metric in custom}
    lines = []
    for name in dict.fromkeys(names):
        metric = own.get(name) or find(name)
        if metric is not None:
            lines.append(_line(name, metric))
    return lines


def _line(name: str, metric: Metric) -> str:
    alias = f" (= {metric.name})" if name != metric.name else ""
    facts = [metric.summary.rstrip(".")]
    if metric.formula:
        facts.append(metric.formula)
    if metric.source and metric.source not in metric.summary:
        facts.append(metric.source)
    return f"{name}{alias}: {'. '.join(facts)}; {_direction(metric)} is better"


def _direction(metric: Metric) -> str:
    return "higher" if metric.higher_is_better else "lower"
