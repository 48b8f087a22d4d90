"""What a plan has to know of authors' plugins and metrics beyond their source: another process imports them to tell.

Kept in the workspace's cache under the fingerprint of the source, so that it is found out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ianvs.config.spec import MetricSpec
from ianvs.errors import ConfigError, IanvsError, Problem
from ianvs.metrics.metric import Metric
from ianvs.metrics.registry import outline, resolve
from ianvs.planning.identity import metric_key
from ianvs.planning.memo import Answer, known_or_asked
from ianvs.plugins.isolated import ask_isolated
from ianvs.plugins.loader import load
from ianvs.plugins.reference import reference_of
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.source import source_of
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


def plugin_info(
    plugins: Sequence[tuple[str | None, str]], cache: Path, seconds: float = 120.0
) -> list[PluginInfo | None]:
    """Of each (url, name); None for a plugin that can't be imported in time, which its check will tell."""

    def ask(unknown: Sequence[int]) -> Sequence[Answer | None]:
        try:
            answers = ask_isolated("ianvs.planning.info:look_at_plugins", [plugins[n] for n in unknown], seconds)
        except TimeoutError:
            answers = None
        return answers or [None] * len(unknown)

    paths = [cache / "plugins" / f"{digest([url, name, source_of(url, name)])}.json" for url, name in plugins]
    known = known_or_asked(paths, ask, _still_true)
    return [
        None if found is None else PluginInfo(found["bound"], found["url"], found["name"], _names(found["takes"]))
        for found in known
    ]


def metric_info(specs: Sequence[MetricSpec], cache: Path, seconds: float = 120.0) -> list[Metric | list[Problem]]:
    """Of each metric what it is, or what is wrong with it. One of an author's file has no `function` here.

    seconds: what importing an author's file may take.
    """
    found: list[Metric | list[Problem]] = []
    for spec in specs:
        try:
            found.append(outline(spec))
        except ConfigError as error:
            found.append(list(error.problems))
    authored = [n for n, metric in enumerate(found) if specs[n].url is not None and isinstance(metric, Metric)]
    paths = [_path_of(specs[n], cache) for n in authored]
    answers = known_or_asked(paths, lambda unknown: _ask([specs[authored[n]] for n in unknown], seconds))
    for n, answer in zip(authored, answers, strict=True):
        assert answer is not None
        if "problems" in answer:
            found[n] = [Problem(message, specs[n].place) for message in answer["problems"]]
        else:
            found[n] = Metric(specs[n].name, "score", **answer)
    return found


# --- plugins ----------------------------------------------------------------------------------------------------------


def look_at_plugins(plugins: list[tuple[str | None, str]]) -> list[Answer | None]:
    """What `plugin_info` wants to know of each, by running its author's code."""
    return [_look_at_plugin(url, name) for url, name in plugins]


def _look_at_plugin(url: str | None, name: str) -> Answer | None:
    try:
        target = load(url, name).target
        bound = bool(getattr(target, "sees_past_rounds", False))
        plain = reference_of(url, name, target)
        takes = constructor_parameters(target if plain == (url, name) else load(*plain).target)
    except Exception:
        return None
    return {
        "bound": bound,
        "url": plain[0],
        "name": plain[1],
        "takes": None if takes.open else list(takes.names),
        "source": digest(source_of(*plain)),
    }


def _still_true(answer: Answer) -> bool:
    """Unless the source of the class that trains plainly is another one now."""
    try:
        return bool(answer.get("source") == digest(source_of(answer["url"], answer["name"])))
    except OSError:  # its file is gone
        return False


def _names(takes: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if takes is None else tuple(takes)


# --- metrics ----------------------------------------------------------------------------------------------------------


def _path_of(spec: MetricSpec, cache: Path) -> Path | None:
    there = spec.url is not None and spec.url.is_file()
    return cache / "metrics" / f"{metric_key(spec)}.json" if there else None


def _ask(specs: Sequence[MetricSpec], seconds: float) -> list[Answer]:
    """Each alone, where together they end the process or come to no end."""
    questions = [
        {"name": spec.name, "url": str(spec.url), "of": spec.of, "options": dict(spec.options)} for spec in specs
    ]
    why = "ended the process"
    try:
        answers: list[Answer] | None = ask_isolated("ianvs.planning.info:look_at_metrics", questions, seconds)
        if answers is not None:
            return answers
    except TimeoutError:
        why = f"took longer than limits.check_seconds: {seconds:g}"
    if len(specs) > 1:
        return [answer for spec in specs for answer in _ask([spec], seconds)]
    return [{"problems": [f"importing the file of metric '{specs[0].name}' {why}."]}]


def look_at_metrics(questions: list[dict[str, Any]]) -> list[Answer]:
    """What `metric_info` wants to know of each, by running its author's code."""
    return [_look_at_metric(MetricSpec(**{**question, "url": Path(question["url"])})) for question in questions]


def _look_at_metric(spec: MetricSpec) -> Answer:
    try:
        metric = resolve(spec)
    except ConfigError as error:
        return {"problems": [problem.message for problem in error.problems]}
    except IanvsError as error:
        return {"problems": [str(error)]}
    return {name: getattr(metric, name) for name in ("summary", "higher_is_better", "source", "pictures")}
