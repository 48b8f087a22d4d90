"""What a test asserts of errors: the code and location of each. Messages go to tests/snapshots/messages.txt."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from ianvs.base.errors import IanvsError, InvalidValue, ValidationError, code_of
from tests.snapshots.recorder import RECORDER

Found = tuple[str, str]
"""Code and location, as in ("unknown-key", "job.yaml:11:5"); the location is "" where there is none."""


def errors_of(call: Callable[..., object], *arguments: Any, **options: Any) -> list[Found]:
    """Code and location of each error that `call` raises; messages are compared with the snapshot.

    Raises:
        AssertionError: A message is not the one in tests/snapshots/messages.txt.
    """
    with pytest.raises((IanvsError, InvalidValue)) as caught:
        call(*arguments, **options)
    return recorded(raised(caught.value))


def raised(error: IanvsError | InvalidValue) -> list[ValidationError]:
    """The errors in an exception: those of a ConfigError or a SourceError, else one without a location."""
    errors = getattr(error, "problems", None)
    return [ValidationError(str(error), code=code_of(error))] if errors is None else list(errors)


def recorded(errors: Iterable[ValidationError]) -> list[Found]:
    """Code and location of each; messages are compared with the snapshot."""
    errors = list(errors)
    RECORDER.record([(error.code, error.location, error.message) for error in errors])
    return located(errors)


def located(errors: Iterable[ValidationError]) -> list[Found]:
    """Code and location of each; messages are not looked at: for whole jobs, and where messages quote a library."""
    return [(error.code, str(error.location or "")) for error in errors]


def printed(text: str) -> None:
    """Compare a text that is no error with the snapshot: the output of a command, a note, the reason in a plan.

    Raises:
        AssertionError: It is not the one in tests/snapshots/messages.txt.
    """
    RECORDER.record([("", None, text)])
