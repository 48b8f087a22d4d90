"""Descriptions of metrics: rows for `ianvs metrics`, and the definitions printed below a leaderboard."""

from collections.abc import Iterable

from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_names import aliases_of
from ianvs.exam.metrics.registry import metrics


def describe() -> list[dict[str, str | tuple[str, ...]]]:
    """Return a row for each metric: name, level, better, formula, source, aliases, needs, summary, in_papers."""
    fields = ("name", "level", "formula", "source", "aliases", "needs", "summary")
    return [
        {**{name: getattr(metric, name) for name in fields}, "better": _direction(metric)}
        | {"in_papers": aliases_of(metric.name)}
        for metric in metrics()
    ]


def legend(columns: Iterable[tuple[str, Metric]]) -> list[str]:
    """Return a line with the definition of each column that is a metric, in their order.

    columns: (title, metric). A title may be an alias, or have the name of a score as in "BWT of f1".
    """
    return [_line(name, metric) for name, metric in dict(columns).items()]


def _line(name: str, metric: Metric) -> str:
    alias = f" (= {metric.name})" if metric.name not in (name, name.partition(" of ")[0]) else ""
    source = "" if metric.source in metric.summary else metric.source
    facts = ". ".join(filter(None, [metric.summary.rstrip("."), metric.formula, source]))
    better = _direction(metric)
    return f"{name}{alias}: {'; '.join(filter(None, [facts, better and f'{better} is better']))}"


def _direction(metric: Metric) -> str:
    return {True: "higher", False: "lower", None: ""}[metric.direction]
