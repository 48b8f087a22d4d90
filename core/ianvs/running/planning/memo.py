"""Answers of other processes about authors' code, kept in files so that each is asked for once."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ianvs.exam.data.fingerprint import read_memo, write_memo
from ianvs.processes.isolated import ask_isolated
from ianvs.running.planning.closed import allowed_paths

__all__ = ["Answer", "cached_answers", "each_answer"]

Answer = dict[str, Any]  # ready for json


def cached_answers(
    function: str,
    questions: Sequence[Mapping[str, object]],
    files: Sequence[Path | None],
    seconds: float,
    holds: Callable[[Answer], bool] = lambda answer: True,
    closed: Sequence[Path] = (),
) -> list[Answer | str]:
    """[n] what `function` says to question n, or in words why its process says nothing.

    function: "package.module:name"; it takes what a question has by name, and returns an answer. files: where answers
    are kept; one that `holds` there is not asked for again, one with "problems" is not kept. seconds: what asking may
    take.
    closed: what the authors' code can't open.
    Questions are asked together, and each alone where together they end the process or come to no end.
    """
    found: list[Answer | str] = ["never asked"] * len(questions)
    unknown = []
    for n, file in enumerate(files):
        stored = None if file is None else read_memo(file)
        if stored is not None and holds(stored):
            found[n] = stored
        else:
            unknown.append(n)
    told = _asked(function, [questions[n] for n in unknown], seconds, closed)
    for n, answer in zip(unknown, told, strict=True):
        found[n], file = answer, files[n]
        if file is not None and not isinstance(answer, str) and not answer.get("problems"):
            write_memo(file, answer)
    return found


def _asked(
    function: str, questions: Sequence[Mapping[str, object]], seconds: float, closed: Sequence[Path]
) -> list[Answer | str]:
    if not questions:
        return []
    why = "ended the process"
    urls = (question.get("url") for question in questions)
    opened = allowed_paths([None if url is None else str(url) for url in urls], closed)
    try:
        asked = [function, questions]
        told: list[Answer | str] | None = ask_isolated(f"{__name__}:each_answer", asked, seconds, closed, opened)
        if told is not None:
            return told
    except TimeoutError:
        why = f"took longer than limits.check_seconds: {seconds:g}"
    if len(questions) == 1:
        return [why]
    return [answer for question in questions for answer in _asked(function, [question], seconds, closed)]


def each_answer(asked: tuple[str, Sequence[Mapping[str, object]]]) -> list[Answer]:
    """What a function says to each question, by running authors' code."""
    (module, _, name), questions = asked[0].partition(":"), asked[1]
    function = getattr(importlib.import_module(module), name)
    return [function(**question) for question in questions]
