"""Answers of other processes about authors' code, kept in files so that each is asked for once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ianvs.errors import ConfigError, Problem
from ianvs.plugins.isolated import ask_isolated
from ianvs.store.files import read_json, write_json

__all__ = ["Answer", "asked_once", "known_or_asked"]

Answer = dict[str, Any]  # ready for json


def asked_once(function: str, question: Answer, path: Path, seconds: float, what: str) -> Answer:
    """What `function` says to `question` in another process, which is asked once for the file at `path`.

    seconds: what it may take. what: how the problem of a process that gives no answer calls it. Raises ConfigError.
    """

    def ask(_: Sequence[int]) -> list[Answer | None]:
        why = "ended the process"
        try:
            answer: Answer | None = ask_isolated(function, question, seconds)
        except TimeoutError:
            answer, why = None, f"took longer than limits.check_seconds: {seconds:g}"
        if answer is None:
            raise ConfigError([Problem(f"{what} {why}.")])
        return [answer]

    [found] = known_or_asked([path], ask)
    assert found is not None
    return found


def known_or_asked(
    paths: Sequence[Path | None],
    ask: Callable[[Sequence[int]], Sequence[Answer | None]],
    holds: Callable[[Answer], bool] = lambda answer: True,
) -> list[Answer | None]:
    """[n] the answer that stands in file n and still holds, else what `ask` says to n, which is kept for next time."""
    stored = [None if path is None else read_json(path) for path in paths]
    answers = [answer if answer is not None and holds(answer) else None for answer in stored]
    unknown = [n for n, answer in enumerate(answers) if answer is None]
    for n, answer in zip(unknown, ask(unknown) if unknown else (), strict=True):
        answers[n], path = answer, paths[n]
        if answer is not None and path is not None and not answer.get("problems"):
            write_json(path, answer)
    return answers
