"""Errors that explain themselves: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
import os
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Place:
    """A position in a file. Line and column count from 1; 0 means "the file as a whole"."""

    file: Path
    line: int = 0
    column: int = 0

    @classmethod
    def in_text(cls, file: Path, text: str, position: int) -> Place:
        """That of a position, from 0, in the text of the file."""
        return cls(file, text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position))

    def __str__(self) -> str:
        name = shown_path(self.file)
        return f"{name}:{self.line}:{self.column}" if self.line else name


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `message` is a full sentence with the remedy in it.

    warning: it may be meant so; a run goes on.
    """

    message: str
    place: Place | None = None
    warning: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


class IanvsError(Exception):
    """Base of every error that is shown to a user without a traceback."""


class ConfigError(IanvsError):
    """What is wrong in the files of a job: all of it at once, before anything runs. warnings: what may be meant so."""

    def __init__(self, problems: Iterable[Problem], warnings: Iterable[Problem] = ()) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.warnings: tuple[Problem, ...] = tuple(warnings)
        super().__init__(str(self))

    def __str__(self) -> str:
        count = len(self.problems)
        tail = f"{count} error{'s' if count != 1 else ''}; nothing was run."
        return "\n".join([*map(str, self.problems), tail])

    def __reduce__(self) -> tuple[type[ConfigError], tuple[tuple[Problem, ...], tuple[Problem, ...]]]:
        return type(self), (self.problems, self.warnings)


class DataError(IanvsError):
    """A dataset that can't be read. The message names the file, the line where there is one, and the remedy."""


class DamagedError(IanvsError):
    """A stored file that is there and can't be believed: cut off, changed, or something else."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{shown_path(self.path)} {self.why}. The next run makes it again."


class PluginError(IanvsError):
    """A plugin that can't be loaded or breaks its contract."""


class ReplyServerError(IanvsError):
    """A server of replies that can't be reached, or is not what the job takes it for. It says nothing of a learner."""


class ExamRuleError(IanvsError):
    """A plugin reached for something that the rules of its exam hide from it."""


def require_known(what: str, value: object, known: Iterable[object]) -> None:
    """Raise PluginError unless `value` is among `known`; `what`, such as "optimizer", says what these are."""
    names = [str(each) for each in known]
    if str(value) not in names:
        raise PluginError(f"{what} '{value}' is not known.{closest(str(value), names)} There are: {', '.join(names)}.")


def closest(name: str, known: Iterable[str]) -> str:
    """ " Did you mean 'x'?" with a leading blank, or "" when no known name is near `name`."""
    known = [str(candidate) for candidate in known]
    folded = {candidate.casefold(): candidate for candidate in known}
    match = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean '{folded[match[0]]}'?" if match else ""


def shown_path(path: Path | str) -> str:
    """`path` as a user would type it: relative to the working directory when it lies below it."""
    path = Path(path)
    if not path.is_absolute():
        return str(path)
    shown = os.path.relpath(path)
    return shown if not shown.startswith(os.pardir) else str(path)


def author_place(error: BaseException) -> str:
    """ "method.py:14: ", the last line on the way to the error that is neither ours nor a library's; "" without one."""
    known = tuple({*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))})
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith((*known, "<")) and frame.f_globals.get("__name__", "").partition(".")[0] != "ianvs":
            place = f"{Path(file).name}:{line}: "
    return place


LONGEST_MESSAGE = 2_000
"""Characters of an error's message that are shown; logs have all of it."""


def shortened(message: str) -> str:
    """Return `message`, cut where it is far longer than LONGEST_MESSAGE, with what is left out counted.

    A message that was cut stays as it is.
    """
    more = len(message) - LONGEST_MESSAGE
    return message if more <= 100 else f"{message[:LONGEST_MESSAGE]}... ({more} more characters)"


def one_line(items: Sequence[object], limit: int = 12) -> str:
    """Comma-separated `items`, cut after `limit`."""
    shown = ", ".join(map(str, items[:limit]))
    return f"{shown}, ... ({len(items)} in all)" if len(items) > limit else shown
