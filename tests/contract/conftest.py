"""A fixture for tests whose datasets are functions."""

import json
import os
import pkgutil
import sys

import pytest

from ianvs.processes.engines.forked import run_and_exit
from ianvs.processes.isolated import InThisProcess, IsolatedCallError


@pytest.fixture
def functions_in_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the function of a dataset in a fork of this process: a new Python would import numpy and torch each time.

    Large tables are read here, not in a process that ends.
    """
    monkeypatch.setattr("ianvs.exam.data.IsolatedCaller", InThisProcess)
    monkeypatch.setattr(sys.modules["ianvs.exam.data.user_dataset"], "ask_isolated", _ask_fork)


def _ask_fork(function: str, question: object, seconds: float) -> object:
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(reading)
        run_and_exit(_answer, function, question, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        answer = answers.read()
    os.waitpid(pid, 0)
    if not answer:
        raise IsolatedCallError("terminated its process")
    return json.loads(answer)


def _answer(function: str, question: object, writing: int) -> None:
    answer = json.dumps(pkgutil.resolve_name(function)(question)).encode()
    with os.fdopen(writing, "wb") as answers:
        answers.write(answer)
