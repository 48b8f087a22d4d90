"""Errors with a location, an explanation and a remedy."""

from __future__ import annotations

import os
import re
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ianvs.base.error_codes import ErrorCode
from ianvs.base.near_names import nearest


@dataclass(frozen=True, order=True)
class Location:
    """A position in a file. Line and column count from 1; 0 means "the file as a whole"."""

    file: Path
    line: int = 0
    column: int = 0

    @classmethod
    def in_text(cls, file: Path, text: str, position: int) -> Location:
        """Return the location of a position in the text of the file, counted from 0."""
        return cls(file, text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position))

    @classmethod
    def of_line(cls, file: Path, line: int) -> Location:
        """Return the beginning of a line; for line 0 the file as a whole."""
        return cls(file, int(line), 1 if line else 0)

    def __str__(self) -> str:
        name = shown_path(self.file)
        return f"{name}:{self.line}:{self.column}" if self.line else name


@dataclass(frozen=True)
class ValidationError:
    """One mistake in the files of a job, or on its command line.

    Attributes:
        message: Full sentences: what is wrong, and what to do.
        location: Where it is; None: in no file.
        warning: Whether it may be intended. Then a run continues.
        code: The type of mistake, for tests and tools. It does not change with the wording.
    """

    message: str
    location: Location | None = None
    warning: bool = False
    code: ErrorCode = field(default="unspecified", kw_only=True)

    @classmethod
    def from_exception(
        cls, error: Exception, location: Location | None, otherwise: ErrorCode = "unspecified"
    ) -> ValidationError:
        """Return the error for an exception.

        Args:
            error: Its text becomes the message, and its code, where it has one, the code.
            location: Where the mistake is.
            otherwise: The code for an exception that has none.
        """
        return cls(str(error), location, code=code_of(error, otherwise))

    @property
    def place(self) -> Location | None:
        """The former name of `location`."""
        return self.location

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


class InvalidValue(ValueError):  # noqa: N818 - it becomes a ValidationError
    """A value in a file that can't be used. A reader of the file adds the location."""

    def __init__(self, message: str, code: ErrorCode = "invalid-value") -> None:
        super().__init__(message)
        self.code: ErrorCode = code

    def __reduce__(self) -> tuple[type[InvalidValue], tuple[str, ErrorCode]]:
        return type(self), (str(self), self.code)


class IanvsError(Exception):
    """Base of every error that is shown to a user without a traceback.

    Args:
        args: The message.
        code: The type of mistake, also for a ValidationError that is made of the exception.
    """

    def __init__(self, *args: object, code: ErrorCode = "unspecified") -> None:
        super().__init__(*args)
        self.code: ErrorCode = code


class ConfigError(IanvsError):
    """All errors in the files of a job, before anything runs.

    Attributes:
        problems: The errors, in the order in which files are read.
        warnings: What may be intended.
    """

    def __init__(self, problems: Iterable[ValidationError], warnings: Iterable[ValidationError] = ()) -> None:
        self.problems: tuple[ValidationError, ...] = tuple(problems)
        self.warnings: tuple[ValidationError, ...] = tuple(warnings)
        super().__init__(str(self), code=self.problems[0].code if self.problems else "unspecified")

    def __str__(self) -> str:
        count = len(self.problems)
        tail = f"{count} error{'s' if count != 1 else ''}; nothing was run."
        return "\n".join([*map(str, self.problems), tail])

    def __reduce__(self) -> tuple[type[ConfigError], tuple[tuple[ValidationError, ...], tuple[ValidationError, ...]]]:
        return type(self), (self.problems, self.warnings)


def code_of(error: Exception, otherwise: ErrorCode = "unspecified") -> ErrorCode:
    """Return the code of one of our exceptions, `otherwise` for others."""
    code = error.code if isinstance(error, IanvsError | InvalidValue) else "unspecified"
    return otherwise if code == "unspecified" else code


class DataError(IanvsError):
    """A dataset that can't be read. The message names the file, the line where there is one, and the remedy."""


class DamagedError(IanvsError):
    """A stored file that was cut off, changed or replaced."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(path, why, code="damaged-file")
        self.path, self.why = path, why

    def __str__(self) -> str:
        return f"{shown_path(self.path)} {self.why}. The next run makes it again."


class PluginError(IanvsError):
    """A plugin that can't be loaded or breaks its contract."""


class ReplyServerError(IanvsError):
    """A server of replies that can't be reached, or differs from what the job says. The learner is not at fault."""


class ExamRuleError(IanvsError):
    """A plugin tried to access something that the rules of its exam hide."""


class HiddenError(ExamRuleError, AttributeError):
    """An ExamRuleError for an attribute. It is an AttributeError, too, so `hasattr` is False."""


def require_known(option: str, value: object, choices: Iterable[object]) -> None:
    """Raise PluginError unless `value` is among `choices`; `option`, such as "optimizer", names them."""
    names = [str(each) for each in choices]
    if str(value) not in names:
        raise PluginError(
            f"{option} '{value}' is not known.{closest(str(value), names)} There are: {', '.join(names)}.",
            code="invalid-choice",
        )


def closest(name: str, choices: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" with a leading blank, or "" if no known name is near."""
    near = nearest(name, map(str, choices))
    return f" Did you mean '{near}'?" if near else ""


def shown_path(path: Path | str) -> str:
    """Return `path` as a user would type it: relative to the working directory if it is below it."""
    path = Path(path)
    if not path.is_absolute():
        return str(path)
    shown = os.path.relpath(path)
    return shown if not shown.startswith(os.pardir) else str(path)


def author_place(error: BaseException) -> str:
    """Return "method.py:14: ", the last line of the traceback that is in neither ianvs nor a library; "" if none is."""
    library_folders = tuple({*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))})
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if (
            not file.startswith((*library_folders, "<"))
            and frame.f_globals.get("__name__", "").partition(".")[0] != "ianvs"
        ):
            place = f"{Path(file).name}:{line}: "
    return place


LONGEST_MESSAGE = 2_000
"""Characters of an error's message that are shown; logs have all of it."""


def shortened(message: str) -> str:
    """Return `message`, cut if it is far longer than LONGEST_MESSAGE, with the length of the rest.

    A message that was cut stays as it is.
    """
    more = len(message) - LONGEST_MESSAGE
    return message if more <= 100 else f"{message[:LONGEST_MESSAGE]}... ({more} more characters)"


def first_line(error: BaseException) -> str:
    """Return a library's message for one of ours, without terminal colours and addresses of objects."""
    line = (str(error).splitlines() or [""])[0]
    if "Weights only load failed" in line:  # torch's further text advises to load it unsafely
        return "it holds other objects than tensors, or no tensors at all"
    line = re.sub(r"\x1b\[[0-9;]*m", "", line)
    return re.sub(r" ?<(?:\w+\.)*\w+ object at 0x[0-9a-fA-F]+>", "", line).strip() or type(error).__name__


def one_line(items: Sequence[object], limit: int = 12) -> str:
    """Return `items` separated by commas, cut after `limit`."""
    shown = ", ".join(map(str, items[:limit]))
    return f"{shown}, ... ({len(items)} in all)" if len(items) > limit else shown


def counted_cases(count: int) -> str:
    """Return "1 case" or "2 cases"."""
    return "1 case" if count == 1 else f"{count} cases"
