"""What a plan has to know of authors' plugins and metrics beyond their source: another process imports them to tell.

Kept in the workspace's cache under the fingerprint of the source, so that it is found out once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ianvs.base.errors import ConfigError, IanvsError, Problem
from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.definition import MatrixMetric, Unit
from ianvs.exam.metrics.metric import Fed, Metric
from ianvs.exam.metrics.registry import metric_header, resolve
from ianvs.plugins.loader import load
from ianvs.plugins.reference import reference_of
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.source import source_of
from ianvs.running.planning.identity import metric_key
from ianvs.running.planning.memo import Answer, cached_answers
from ianvs.store.keys import digest

__all__ = ["PluginInfo", "metric_info", "plugin_info"]


@dataclass(frozen=True)
class PluginInfo:
    """bound: whether it sees past rounds. url, name: the class that trains the same network plainly.

    takes: hyperparameters that this class takes; None: any.
    """

    bound: bool
    url: str | None
    name: str
    takes: tuple[str, ...] | None


_PLUGIN_INFO = TypeAdapter(PluginInfo)


def plugin_info(
    plugins: Sequence[tuple[str | None, str]],
    cache: Path,
    seconds: float = 120.0,
    job: Path | None = None,
    closed: Sequence[Path] = (),
) -> list[PluginInfo | None]:
    """Of each (url, name); None for a plugin that can't be imported in time, which its check will tell.

    job: the folder of the job, whose modules count as the plugins' own. closed: what their code can't open.
    """
    questions = [{"url": url, "name": name} for url, name in plugins]
    files = [cache / "plugins" / f"{digest([url, name, source_of(url, name, job=job)])}.json" for url, name in plugins]
    told = cached_answers("ianvs.running.planning.info:look_at_plugin", questions, files, seconds, _still_true, closed)
    return [None if isinstance(one, str) or not one else _PLUGIN_INFO.validate_python(one) for one in told]


def metric_info(specs: Sequence[MetricSpec], cache: Path, seconds: float = 120.0) -> list[Metric | list[Problem]]:
    """Of each metric what it is, or what is wrong with it. One of an author's file has no `function` here.

    seconds: what importing an author's file may take.
    """
    found: list[Metric | list[Problem]] = []
    authored: dict[int, MetricSpec] = {}
    for n, spec in enumerate(specs):
        try:
            found.append(metric_header(spec))
        except ConfigError as error:
            found.append(list(error.problems))
        else:
            authored |= {n: spec} if spec.url is not None and spec.contract == "native" else {}
    questions = [
        {"name": spec.name, "url": str(spec.url), "of": spec.of, "options": dict(spec.options)}
        for spec in authored.values()
    ]
    files = [_path_of(spec, cache) for spec in authored.values()]
    told = cached_answers("ianvs.running.planning.info:look_at_metric", questions, files, seconds)
    for (n, spec), answer in zip(authored.items(), told, strict=True):
        if isinstance(answer, str):
            answer = {"problems": [f"importing the file of metric '{spec.name}' {answer}."]}
        wrong = [Problem(message, spec.place) for message in answer.get("problems", ())]
        found[n] = wrong or _told(spec.name, **answer)
    return found


def _told(name: str, *, unit: Unit | None = None, accumulates: bool = False, **facts: Any) -> Metric:
    """unit: of a metric over a score matrix."""
    if unit is not None:
        return MatrixMetric(name, "matrix", unit=unit, **facts)
    return Metric(name, "score", accumulate=_elsewhere if accumulates else None, **facts)


def _elsewhere() -> Fed:
    raise RuntimeError("an author's metric is computed where its file is imported")


def look_at_plugin(url: str | None, name: str) -> Answer:
    """What `plugin_info` wants to know of it, by running its author's code; {} where that fails."""
    try:
        target = load(url, name).target
        bound = bool(getattr(target, "sees_past_rounds", False))
        plain = reference_of(url, name, target)
        takes = constructor_parameters(target if plain == (url, name) else load(*plain).target)
    except Exception:
        return {}
    info = PluginInfo(bound, *plain, takes=None if takes.open else takes.names)
    return {**vars(info), "source": digest(source_of(*plain))}


def _still_true(answer: Answer) -> bool:
    """Unless the source of the class that trains plainly is another one now."""
    try:
        return bool(answer["source"] == digest(source_of(answer["url"], answer["name"])))
    except (KeyError, OSError):  # it could not be imported, or its file is gone
        return False


def _path_of(spec: MetricSpec, cache: Path) -> Path | None:
    there = spec.url is not None and spec.url.is_file()
    # One that is over a score matrix is so only with an `of`, and without one it is refused.
    return cache / "metrics" / f"{metric_key(spec)}{'-matrix' if spec.of else ''}.json" if there else None


def look_at_metric(name: str, url: str, of: str | None, options: Mapping[str, object]) -> Answer:
    """What `metric_info` wants to know of it, by running its author's code."""
    try:
        metric = resolve(MetricSpec(name, Path(url), of, options))
    except ConfigError as error:
        return {"problems": [problem.message for problem in error.problems]}
    except IanvsError as error:
        return {"problems": [str(error)]}
    told = {name: getattr(metric, name) for name in _TOLD}
    if isinstance(metric, MatrixMetric):
        return {**told, "unit": metric.unit, "needs": metric.needs}
    return {**told, "accumulates": metric.accumulate is not None}


_TOLD = ("summary", "higher_is_better", "source", "formula", "pictures", "pooled", "over_rounds", "partial", "mapping")
