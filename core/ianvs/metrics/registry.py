"""The table of all metrics by name, and what a metric of a testenv means."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from ianvs.errors import ConfigError, Problem, closest
from ianvs.metrics.classification import SCORES
from ianvs.metrics.custom import from_object
from ianvs.metrics.matrix import MATRIX_METRICS
from ianvs.metrics.metric import Metric
from ianvs.metrics.overlap import OVERLAPS
from ianvs.metrics.system import SYSTEM
from ianvs.metrics.text_meaning import TEXT

if TYPE_CHECKING:
    from ianvs.config.spec import MetricSpec

__all__ = ["METRICS", "find", "names", "outline", "resolve", "suggest"]

METRICS: tuple[Metric, ...] = (*SCORES, *OVERLAPS, *TEXT, *MATRIX_METRICS, *SYSTEM)

_BY_NAME: Mapping[str, Metric] = MappingProxyType(
    {name: metric for metric in METRICS for name in (metric.name, *metric.aliases)}
)


def names() -> tuple[str, ...]:
    """The names of all built-in metrics, without aliases: scores, then those over a score matrix, then system."""
    return tuple(metric.name for metric in METRICS)


def find(name: str) -> Metric | None:
    """The built-in metric of this name or alias; upper and lower case differ (`acc` is a score, `ACC` is `AA`)."""
    return _BY_NAME.get(name)


def suggest(name: str) -> str:
    """ " Did you mean 'mIoU'?" with a leading blank, or "" when no name is near."""
    # The last of several names that differ only in case wins: aliases come first, and those of scores come last.
    aliases = [alias for metric in reversed(METRICS) for alias in metric.aliases]
    return closest(name, [*aliases, *names()])


def resolve(spec: MetricSpec) -> Metric:
    """The metric that an entry of a testenv means: the one in the file at `url`, else the built-in of that name.

    A built-in comes under its own name, which may differ from `spec.name` (an alias): a column is headed by the latter.
    Raises ConfigError for an unknown name or an option that the metric does not take, PluginError for a bad file.
    """
    if spec.url is None:
        return outline(spec)
    from ianvs.plugins.loader import load_object

    return _fitting(spec, from_object(spec, load_object(str(spec.url), spec.name)))


def outline(spec: MetricSpec) -> Metric:
    """What `resolve` gives, but without running an author's code: of the metric in a file, that it is a score."""
    return _fitting(spec, _built_in(spec) if spec.url is None else Metric(spec.name, "score", ""))


def _built_in(spec: MetricSpec) -> Metric:
    found = find(spec.name)
    if found is None:
        message = f"metric '{spec.name}' is not known.{suggest(spec.name)} `ianvs metrics` lists all."
        raise ConfigError([Problem(message, spec.place)])
    if spec.options and found.configure is None:
        raise ConfigError(
            Problem(f"metric '{spec.name}' is built in and has no option '{option}'.", spec.place)
            for option in spec.options
        )
    return found.configure(spec) if found.configure is not None else found


def _fitting(spec: MetricSpec, metric: Metric) -> Metric:
    if spec.of is not None and metric.level != "matrix":
        message = f"`of` names the score that a metric over a score matrix is computed from; '{spec.name}' is none."
        raise ConfigError([Problem(message, spec.place)])
    return metric
