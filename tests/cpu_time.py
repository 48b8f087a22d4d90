"""How many CPU seconds each test uses, its processes included: the sum and the dearest are told at the end of a run.

`--cpu-limit SECONDS` names every test above that which is not marked `slow`. It fails nothing: on a busy machine
the same test has taken three times its CPU seconds. What a fixture costs is counted where it is set up; processes that
outlive their test are counted when they end.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest

from tests import warm_server

TOLD = 20  # tests that are named
PROPERTY = "cpu_seconds"
_before = pytest.StashKey[float]()


def used() -> float:
    """CPU seconds of this process and of all that it started and that have ended."""
    warm = warm_server.used()  # first: it may find that the process has ended, which is then among our children
    own = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return warm + sum(one.ru_utime + one.ru_stime for one in own)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-limit", type=float, help="names tests above that many CPU seconds that aren't marked slow")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # with -n, workers measure and the process that started them tells
        config.pluginmanager.register(Told(config.getoption("--cpu-limit")), "cpu-seconds")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[_before] = used()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    if call.when == "teardown":
        spent = used() - item.stash[_before]  # less than nothing where a test ended the warm process
        item.user_properties.append((PROPERTY, max(0.0, spent)))
    return (yield)


class Told:
    """Gathers what every test used, and tells it."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.seconds: dict[str, float] = {}
        self.slow: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, seconds in report.user_properties:
            if name == PROPERTY and report.when == "teardown":
                self.seconds[report.nodeid] = seconds
                if "slow" in report.keywords:
                    self.slow.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.seconds:
            return
        tell = terminalreporter.write_line
        terminalreporter.section("CPU seconds")
        tell(f"{sum(self.seconds.values()):9.2f}s {len(self.seconds)} tests, their processes included")
        for name in sorted(self.seconds, key=self.seconds.__getitem__, reverse=True)[:TOLD]:
            tell(f"{self.seconds[name]:9.2f}s {name}")
        for name, seconds in self.seconds.items():
            if self.limit and seconds > self.limit and name not in self.slow:
                told = f"WARNING {name}: {seconds:.0f} CPU seconds, above the limit of {self.limit:g}."
                remedy = "Make it cheaper, or mark it slow and add a quick one that holds its promise."
                tell(f"{told} {remedy}", yellow=True)
