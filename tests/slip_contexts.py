"""A pytest plugin for slips.py: notes which test runs, for coverage, and how every test ended."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

__all__ = ["CURRENT_TEST", "FIRST_FAILURE", "OUTCOMES", "enter_context"]

CURRENT_TEST = "SLIPS_TEST"
"""Environment variable with the id of the test: processes that a test starts take it for their coverage context."""
OUTCOMES = "SLIPS_OUTCOMES"
"""Environment variable: the file that gets {test id: [passed, seconds]}."""
FIRST_FAILURE = "SLIPS_FIRST_FAILURE"
"""Environment variable: the file that gets the id of the first test that fails."""


def enter_context(test: str) -> None:
    """Let coverage, where it measures this process, count what follows for `test`."""
    if CURRENT_TEST not in os.environ:
        return
    from coverage import Coverage

    if (measuring := Coverage.current()) is not None:
        measuring.switch_context(test)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if CURRENT_TEST not in os.environ:
        return (yield)
    os.environ[CURRENT_TEST] = item.nodeid
    enter_context(item.nodeid)
    try:
        return (yield)
    finally:
        enter_context("")
        os.environ[CURRENT_TEST] = ""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # with -n, the process that starts the others hears of every test
        config.pluginmanager.register(_Outcomes(), "slip-outcomes")


class _Outcomes:
    def __init__(self) -> None:
        self.tests: dict[str, list[bool | float]] = {}
        self.has_failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before, seconds = self.tests.get(report.nodeid, [True, 0.0])
        self.tests[report.nodeid] = [bool(before) and report.passed, round(seconds + report.duration, 3)]
        if report.failed:
            self._note_failure(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._note_failure(f"{report.nodeid} (its import)")

    def _note_failure(self, test: str) -> None:
        if not self.has_failed and (path := os.environ.get(FIRST_FAILURE)):
            Path(path).write_text(test)
        self.has_failed = True

    def pytest_sessionfinish(self) -> None:
        if path := os.environ.get(OUTCOMES):
            Path(path).write_text(json.dumps(self.tests, indent=0))
