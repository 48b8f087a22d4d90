"""Metrics as the supervisor sees them. What an author wrote is described by another process, and never run in this one.

Kept in the workspace's cache under the fingerprint of the metric's source, so that it is found out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ianvs.config.spec import MetricSpec
from ianvs.errors import ConfigError, IanvsError, Problem
from ianvs.metrics.metric import Metric
from ianvs.metrics.registry import outline, resolve
from ianvs.planning.identity import metric_key
from ianvs.plugins.isolated import ask_isolated
from ianvs.store.files import read_json, write_json

__all__ = ["describe"]


def describe(specs: Sequence[MetricSpec], cache: Path, seconds: float = 120.0) -> list[Metric | list[Problem]]:
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
    for n, answer in zip(authored, _answers([specs[n] for n in authored], cache, seconds), strict=True):
        if "problems" in answer:
            found[n] = [Problem(message, specs[n].place) for message in answer["problems"]]
        else:
            found[n] = Metric(specs[n].name, "score", **answer)
    return found


def _answers(specs: Sequence[MetricSpec], cache: Path, seconds: float) -> list[dict[str, Any]]:
    """{"summary", "higher_is_better", "source", "pictures"} of each, or {"problems": messages}."""
    paths = [cache / "metrics" / f"{metric_key(spec)}.json" if _is_file(spec) else None for spec in specs]
    known = [None if path is None else read_json(path) for path in paths]
    asked = iter(_ask([spec for spec, answer in zip(specs, known, strict=True) if answer is None], seconds))
    answers: list[dict[str, Any]] = []
    for path, answer in zip(paths, known, strict=True):
        answers.append(next(asked) if answer is None else answer)
        if answer is None and path is not None and "problems" not in answers[-1]:
            write_json(path, answers[-1])
    return answers


def _is_file(spec: MetricSpec) -> bool:
    return spec.url is not None and spec.url.is_file()


def _ask(specs: Sequence[MetricSpec], seconds: float) -> list[dict[str, Any]]:
    """Each alone, where together they end the process or come to no end."""
    if not specs:
        return []
    questions = [
        {"name": spec.name, "url": str(spec.url), "of": spec.of, "options": dict(spec.options)} for spec in specs
    ]
    why = "ended the process"
    try:
        answers: list[dict[str, Any]] | None = ask_isolated("ianvs.planning.metric_info:look", questions, seconds)
        if answers is not None:
            return answers
    except TimeoutError:
        why = f"took longer than limits.check_seconds: {seconds:g}"
    if len(specs) > 1:
        return [answer for spec in specs for answer in _ask([spec], seconds)]
    return [{"problems": [f"importing the file of metric '{specs[0].name}' {why}."]}]


def look(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What `_answers` wants to know of each, by running its author's code."""
    return [_look(MetricSpec(**{**question, "url": Path(question["url"])})) for question in questions]


def _look(spec: MetricSpec) -> dict[str, Any]:
    try:
        metric = resolve(spec)
    except ConfigError as error:
        return {"problems": [problem.message for problem in error.problems]}
    except IanvsError as error:
        return {"problems": [str(error)]}
    facts = ("summary", "higher_is_better", "source", "pictures")
    return {name: getattr(metric, name) for name in facts}
