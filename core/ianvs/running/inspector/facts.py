"""Facts about an author's file, found by running its code in the process that answers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

from ianvs.base.errors import ConfigError, IanvsError, Location, PluginError, code_of
from ianvs.config.contracts import Interpreter
from ianvs.config.messages import unknown_key_hint
from ianvs.config.models import AlgorithmSpec
from ianvs.config.spec import MetricSpec, ParadigmSpec
from ianvs.exam.data.options import check_options
from ianvs.exam.metrics.metric import Fed, Metric, Unit
from ianvs.exam.metrics.registry import resolve
from ianvs.exam.paradigms import Paradigm, find_paradigm
from ianvs.plugins.loader import load_once, reference_of
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.source import source_of
from ianvs.processes.interpreters.author_object import load_in
from ianvs.store.keys import digest

Answer = dict[str, Any]  # a JSON value; not cached if it has "problems"
_METRIC_FACTS = (
    *("summary", "higher_is_better", "direction_known", "source", "formula", "pictures"),
    *("pooled", "over_rounds", "partial", "mapping", "needs", "asks"),
)


@dataclass(frozen=True)
class ReferenceFacts:
    """The class that trains the same network plainly, and the hyperparameters that it takes; None: any.

    source: digest of its source.
    """

    url: str | None
    name: str
    takes: tuple[str, ...] | None
    source: str


@dataclass(frozen=True)
class PluginFacts:
    """Facts about a plugin.

    Attributes:
        arguments: Named arguments of its constructor.
        bound: Whether it sees past rounds.
        reference: None if the class that it names can't be used, which its check reports.
    """

    arguments: tuple[str, ...]
    bound: bool
    reference: ReferenceFacts | None


@dataclass(frozen=True)
class ParadigmFacts:
    """Facts about a paradigm.

    Attributes:
        methods: By type of module the required methods of its class.
        needed: Types of modules that an algorithm must list.
        as_one: See ianvs.exam.paradigms.Paradigm.
        reference: See ianvs.exam.paradigms.Paradigm.
        by_itself: Whether its predictions are not simply those of its base model.
        receives_feedback: Whether it receives feedback on predictions instead of training data.
        problems: (option, error); "" is the paradigm itself.
    """

    methods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    as_one: bool = False
    reference: bool = False
    problems: tuple[tuple[str, str], ...] = ()
    by_itself: bool = False
    receives_feedback: bool = False


def look_at_plugin(plugin: tuple[str | None, str, Interpreter]) -> Answer:
    """Return `PluginFacts` of (url, name) in its interpreter."""
    url, name, where = plugin
    try:
        target = load_in(where, url, name, once=True).target
        arguments, bound = constructor_parameters(target).names, bool(getattr(target, "sees_past_rounds", False))
    except Exception as error:
        return {"problems": [str(error)]}
    try:
        url, name = reference_of(url, name, target)
        takes = constructor_parameters(load_in(where, url, name, once=True).target)
    except Exception:
        return asdict(PluginFacts(arguments, bound, None))
    source = digest(source_of(url, name, exactly=True))
    reference = ReferenceFacts(url, name, None if takes.open else takes.names, source)
    return asdict(PluginFacts(arguments, bound, reference))


def look_at_metric(spec: MetricSpec) -> Answer:
    """Return the fields of a `Metric` that its file determines."""
    try:
        metric = resolve(spec, load_once)
    except ConfigError as error:
        return {"problems": [(problem.code, problem.message) for problem in error.problems]}
    except IanvsError as error:
        return {"problems": [(code_of(error, "unloadable-plugin"), str(error))]}
    facts = {name: getattr(metric, name) for name in _METRIC_FACTS}
    if metric.level == "matrix":
        return {**facts, "unit": metric.unit}
    return {**facts, "accumulates": metric.accumulate is not None}


def metric_from(name: str, *, unit: Unit | None = None, accumulates: bool = False, **facts: Any) -> Metric:
    """Return a metric from the facts of `look_at_metric`, without its function.

    Unit: of a metric over a score matrix.
    """
    if unit is not None:
        return Metric(name, "matrix", unit=unit, **facts)
    return Metric(name, "score", accumulate=_elsewhere if accumulates else None, **facts)


def _elsewhere() -> Fed:
    raise RuntimeError("an author's metric is computed where its file is imported")


def look_at_paradigm(spec: ParadigmSpec) -> Answer:
    return asdict(paradigm_facts(spec))


def paradigm_facts(spec: ParadigmSpec) -> ParadigmFacts:
    """Return the facts of a paradigm. The methods of a module's class are those that its protocol requires."""
    try:
        paradigm = find_paradigm(spec, load_once)
    except PluginError as error:
        return ParadigmFacts(problems=(("", str(error)),))
    fields = paradigm.options.model_fields
    unknown = [option for option in spec.options if option not in fields]
    given = {name: value for name, value in spec.options.items() if name in fields}
    _, wrong = check_options(paradigm.options, given, spec.name, None, {name: Location(Path(name)) for name in given})
    keys = [*AlgorithmSpec.known_keys(), *fields]
    hints = {option: unknown_key_hint(option, keys, "algorithm") for option in unknown}
    problems = [(option, f"unknown key '{option}' in algorithm.{hint}") for option, hint in hints.items()]
    problems += [(str(problem.place.file) if problem.place else "", problem.message) for problem in wrong]
    methods: dict[str, tuple[str, ...]] = {}
    optional = []  # types of modules that are given as `Protocol | None`
    for kind, protocol in paradigm.modules.items():
        parts = get_args(protocol)
        if type(None) in parts:
            optional.append(kind)
        required = next((part for part in parts if part is not type(None)), protocol)
        layers = [layer for layer in getattr(required, "__mro__", ()) if getattr(layer, "_is_protocol", False)]
        named = (name for layer in layers for name, value in vars(layer).items() if callable(value))
        methods[kind] = tuple(name for name in dict.fromkeys(named) if not name.startswith("_"))
    return ParadigmFacts(
        methods,
        tuple(kind for kind in methods if kind not in optional),
        paradigm.as_one,
        paradigm.reference,
        tuple(problems),
        paradigm.predict is not Paradigm.predict,
        paradigm.hears_feedback,
    )
