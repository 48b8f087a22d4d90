"""What a case does to its process (sys.path, sys.modules, environment) stays in a child of the tests' process."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ianvs.base.errors import IanvsError, ValidationError
from tests.errors import raised


def in_child(function: Callable[..., Any], *args: Any, sedna: Path | None = None) -> Any:
    """What `function(*args)` returns in a forked process; AssertionError with its traceback if it raises.

    sedna: a folder that is first on sys.path, with a package of that name that is another one.
    None comes back from a process that ended before it could answer.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            if sedna is not None:
                sys.path.insert(0, str(sedna))
            answer = (True, function(*args))
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as stream:
            stream.write(pickle.dumps(answer))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        content = stream.read()
    os.waitpid(child, 0)
    if not content:
        return None
    fine, value = pickle.loads(content)
    assert fine, value
    return value


def errors_in_child(function: Callable[..., Any], *args: Any) -> list[ValidationError]:
    """The errors that `function(*args)` raises in a forked process."""

    def caught() -> list[ValidationError]:
        with pytest.raises(IanvsError) as failed:
            function(*args)
        return raised(failed.value)

    errors: list[ValidationError] = in_child(caught)
    return errors


def other_sedna(folder: Path) -> Path:
    """A folder with packages `sedna` and `core` as somebody may have installed them: nothing of them is of use."""
    for name in ("sedna", "sedna/common", "core", "core/common"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "__init__.py").write_text("raise RuntimeError('the wrong package was imported')\n")
    (folder / "sedna/common/class_factory.py").write_text("raise RuntimeError('the wrong module was imported')\n")
    return folder
