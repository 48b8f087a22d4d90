"""What a plan has to know of a plugin beyond its source: found by importing it, in a process of its own.

Kept in the workspace's cache under the fingerprint of the plugin's source, so that it is found out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ianvs.plugins.isolated import ask_isolated
from ianvs.plugins.loader import load
from ianvs.plugins.reference import reference_of
from ianvs.plugins.signature import constructor_parameters
from ianvs.plugins.source import source_of
from ianvs.store.files import read_json, write_json
from ianvs.store.keys import digest

__all__ = ["PluginInfo", "plugin_info"]


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
    paths = [cache / "plugins" / f"{digest([url, name, source_of(url, name)])}.json" for url, name in plugins]
    stored = [_still_true(read_json(path)) for path in paths]
    unknown = [index for index, found in enumerate(stored) if found is None]
    if unknown:
        try:
            answers = ask_isolated("ianvs.planning.plugin_info:look", [plugins[index] for index in unknown], seconds)
        except TimeoutError:
            answers = None
        for index, facts in zip(unknown, answers or [None] * len(unknown), strict=True):
            stored[index] = facts
            if facts is not None:
                write_json(paths[index], {**facts, "source": digest(source_of(facts["url"], facts["name"]))})
    return [None if facts is None else _facts(facts) for facts in stored]


def _still_true(facts: dict[str, Any] | None) -> dict[str, Any] | None:
    """What is known, unless the source of the class that trains plainly is another one now."""
    try:
        known = facts is not None and facts.get("source") == digest(source_of(facts["url"], facts["name"]))
    except OSError:  # its file is gone
        known = False
    return facts if known else None


def _facts(stored: dict[str, Any]) -> PluginInfo:
    takes = stored["takes"]
    return PluginInfo(stored["bound"], stored["url"], stored["name"], None if takes is None else tuple(takes))


def look(plugins: list[tuple[str | None, str]]) -> list[dict[str, Any] | None]:
    """The facts of each, by running its author's code."""
    return [_look(url, name) for url, name in plugins]


def _look(url: str | None, name: str) -> dict[str, Any] | None:
    try:
        target = load(url, name).target
        bound = bool(getattr(target, "sees_past_rounds", False))
        plain = reference_of(url, name, target)
        takes = constructor_parameters(target if plain == (url, name) else load(*plain).target)
    except Exception:
        return None
    return {"bound": bound, "url": plain[0], "name": plain[1], "takes": None if takes.open else list(takes.names)}
