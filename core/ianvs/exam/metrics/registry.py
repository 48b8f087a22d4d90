"""Finds metrics of installed packages by name, and the metric of an entry of a testenv."""

from collections.abc import Callable
from importlib.metadata import EntryPoint

from ianvs.base.entry_points import entries, is_ours, origin_text
from ianvs.base.errors import ConfigError, PluginError, ValidationError, closest
from ianvs.config.contracts import contract_named
from ianvs.config.models.contract_name import NATIVE
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.custom import from_object
from ianvs.exam.metrics.metric import Metric
from ianvs.exam.metrics.metric_names import ALIASES, named_by_alias, normalize
from ianvs.plugins.loader import Loaded, load, load_entry_point, load_entry_points

GROUP = "ianvs.metrics"
"""The group of entry points for metrics, those of ianvs included; each names a tuple of metrics."""

_LEVELS = ("score", "matrix", "stream", "system")


def _all_named(name: str) -> list[tuple[Metric, EntryPoint]]:
    """Return all metrics of this name; several if packages define the same name.

    Those of ianvs have different names, so that the first one ends the search among them, before others are imported.
    """
    matches: list[tuple[Metric, EntryPoint]] = []
    for point in entries(GROUP):
        if matches and is_ours(point):
            continue
        things = load_entry_point(point, Metric)
        if not isinstance(things, str):
            matches += [(metric, point) for metric in things if name in (metric.name, *metric.aliases)]
    return matches


def _all_alike(name: str) -> list[Metric]:
    """Return all metrics whose name or alias differs from `name` only in what `normalize` removes."""
    spelling = normalize(name)
    every = (metric for metric, _ in load_entry_points(GROUP, Metric)[0])
    return [metric for metric in every if spelling in map(normalize, (metric.name, *metric.aliases))]


def metrics() -> tuple[Metric, ...]:
    """Return all metrics: scores, then those of matrices, streams and systems; ours before those of other packages."""
    all_metrics, _ = load_entry_points(GROUP, Metric)
    return tuple(sorted((metric for metric, _ in all_metrics), key=lambda metric: _LEVELS.index(metric.level)))


def names() -> tuple[str, ...]:
    """Return the names of all metrics, without aliases."""
    return tuple(metric.name for metric in metrics())


def unusable() -> tuple[str, ...]:
    """Return a sentence for each entry point whose metrics can't be used."""
    return load_entry_points(GROUP, Metric)[1]


def find(name: str) -> Metric | None:
    """Return the metric of this name or alias, at first in this case (`acc` is a score, `ACC` is `AA`).

    Otherwise the table of names in papers is searched, then the columns of costs, then names that differ only in case,
    hyphens, underscores and blanks, if they are of one metric. Raises PluginError if two packages define the name.
    """
    matches = _all_named(name)
    base, _, shift = name.rpartition("@")
    if not matches and shift.isdecimal() and (ahead := find(base)) is not None and ahead.at_shift is not None:
        return ahead.at_shift(ahead, int(shift))
    if not matches and (target := named_by_alias(name)):
        matches = _all_named(target)
    if not matches:  # the title of its column in the leaderboard: Train_seconds
        matches = [
            (metric, at) for metric, at in _all_named(f"{name[:1].lower()}{name[1:]}") if metric.level == "system"
        ]
    if not matches:
        alike = _all_alike(name)
        return alike[0] if len(alike) == 1 else None
    if len(matches) > 1:
        owners = " and by ".join(origin_text(point) for _, point in matches)
        raise PluginError(
            f"metric '{name}' is defined twice, by {owners}. Uninstall one, or copy the metric to a `url`.",
            code="duplicate-entry",
        )
    return matches[0][0] if matches else None


def foreign_module(name: str) -> str | None:
    """Return the module of the package that provides the metric `name`; None if ianvs provides it or it is unknown."""
    return next((point.module for _, point in _all_named(name) if not is_ours(point)), None)


def suggest(name: str) -> str:
    """Return " Did you mean 'mIoU'?" with a leading blank, or "" if no name is similar."""
    # The last of several names that differ only in case wins: aliases come first, and those of scores come last.
    aliases = [alias for metric in reversed(metrics()) for alias in metric.aliases]
    return closest(name, [*ALIASES, *aliases, *names()])


def resolve(spec: MetricSpec, loading: Callable[[str, str], Loaded] = load) -> Metric:
    """Return the metric of an entry of a testenv: the one in the file at `url`, else the installed one of that name.

    The latter comes under its own name, which may differ from `spec.name` (an alias): a column is headed by this.
    Raises ConfigError for an unknown name or an option that the metric does not take, PluginError for a bad file.
    """
    if spec.url is None:
        return metric_header(spec)
    return _fitting(spec, from_object(spec, loading(str(spec.url), spec.name).target))


def metric_header(spec: MetricSpec) -> Metric:
    """Return what `resolve` returns, without running the code at a `url`: of such a metric only the level is known.

    The level follows from `of`, which a metric over a score matrix at a `url` must have, and a score can't have. The
    value of a metric of level "reported" comes from the contract that runs the cases.
    """
    of_contract = None if spec.contract == NATIVE else contract_named(spec.contract).metric(spec)
    if of_contract is not None:
        return Metric(
            spec.name,
            "reported",
            of_contract.summary,
            of_contract.higher_is_better is not False,
            direction_known=of_contract.higher_is_better is not None,
            mapping=of_contract.mapping,
        )
    if spec.url is not None:
        return _fitting(spec, Metric(spec.name, "matrix" if spec.score else "score", ""))
    try:
        metric = find(spec.name)
    except PluginError as error:
        raise ConfigError([ValidationError(str(error), spec.place, code="unknown-metric")]) from None
    if metric is None:
        message = f"metric '{spec.name}' is not known.{suggest(spec.name)} `ianvs metrics` lists all."
        raise ConfigError([ValidationError(" ".join([message, *unusable()]), spec.place, code="unknown-metric")])
    if spec.options and metric.configure is None:
        state = "is built in and has" if foreign_module(spec.name) is None else "has"
        raise ConfigError(
            ValidationError(f"metric '{spec.name}' {state} no option '{option}'.", spec.place, code="unknown-option")
            for option in spec.options
        )
    if metric.configure is not None:
        metric = metric.configure(spec)
    return metric if spec.score is None else _fitting(spec, metric)


def _fitting(spec: MetricSpec, metric: Metric) -> Metric:
    if spec.score is not None and metric.level != "matrix":
        message = f"`of` names the score that a metric over a score matrix is computed from; '{spec.name}' is none."
        raise ConfigError([ValidationError(message, spec.place, code="unfit-metric")])
    if spec.score is None and spec.url is not None and metric.level == "matrix":
        message = f"metric '{spec.name}' is over a score matrix: say of which score, such as `of: accuracy`."
        raise ConfigError([ValidationError(message, spec.place, code="missing-option")])
    return metric
