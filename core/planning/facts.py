"""What a plan has to know of a plugin beyond its source: found by importing it, in a process of its own.

Kept in the workspace's cache under the fingerprint of the plugin's source, so that it is found out once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.plugins.loader import load
from core.plugins.signature import constructor_parameters
from core.plugins.source import source_of
from core.store.files import read_json, write_json
from core.store.keys import digest

__all__ = ["Facts", "facts_of"]

_TIMEOUT = 300  # seconds for importing all plugins of a job


@dataclass(frozen=True)
class Facts:
    """bound: whether it sees past rounds. url, name: the class that trains the same network plainly.

    takes: hyperparameters that this class takes; None: any.
    """

    bound: bool
    url: str | None
    name: str
    takes: tuple[str, ...] | None


def facts_of(plugins: Sequence[tuple[str | None, str]], cache: Path) -> list[Facts | None]:
    """Of each (url, name); None for a plugin that can't be imported, which its check will tell."""
    paths = [cache / "plugins" / f"{digest([url, name, source_of(url, name)])[:32]}.json" for url, name in plugins]
    stored = [read_json(path) for path in paths]
    unknown = [index for index, found in enumerate(stored) if found is None]
    if unknown:
        found = _ask([plugins[index] for index in unknown])
        for index, facts in zip(unknown, found, strict=True):
            stored[index] = facts
            if facts is not None:
                paths[index].parent.mkdir(parents=True, exist_ok=True)
                write_json(paths[index], facts)
    return [None if facts is None else _facts(facts) for facts in stored]


def _facts(stored: dict[str, Any]) -> Facts:
    takes = stored["takes"]
    return Facts(stored["bound"], stored["url"], stored["name"], None if takes is None else tuple(takes))


def _ask(plugins: list[tuple[str | None, str]]) -> list[dict[str, Any] | None]:
    """In another process, since importing a plugin runs its author's code."""
    command = [sys.executable, "-m", "core.planning.facts"]
    try:
        answer = subprocess.run(
            command, input=json.dumps(plugins), capture_output=True, text=True, timeout=_TIMEOUT, check=True
        )
        found: list[dict[str, Any] | None] = json.loads(answer.stdout.splitlines()[-1])
        return found
    except (subprocess.SubprocessError, OSError, ValueError, IndexError):
        return [None] * len(plugins)


def _look(url: str | None, name: str) -> dict[str, Any] | None:
    try:
        target = load(url, name).target
        bound = bool(getattr(target, "sees_past_rounds", False))
        reference = getattr(target, "reference", None)
        if isinstance(reference, str) and ":" in reference:
            url, _, name = reference.partition(":")
            target = load(url, name).target
        takes = constructor_parameters(target)
    except Exception:
        return None
    return {"bound": bound, "url": url, "name": name, "takes": None if takes.open else list(takes.names)}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    answers = [_look(url, name) for url, name in asked]
    print()  # whatever the plugins printed ends here
    print(json.dumps(answers))
