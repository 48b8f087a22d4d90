"""Tests that need a GPU are skipped where there is none; options of a run."""

import os
import sys
import time
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import settings

from ianvs.processes.engines.engine import usable_cores
from tests.snapshots.recorder import RECORDER

_STARTED = time.monotonic()

# No deadlines: a busy machine may take any time for an example. `.ci/nightly` has more of them.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("nightly", deadline=None, max_examples=100)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stop-after", type=float, metavar="MINUTES", help="skip every test that would start later")
    help_ = "write the messages of the tests that run to tests/snapshots/messages.txt, and compare none"
    parser.addoption("--update-snapshots", action="store_true", help=help_)


def pytest_configure(config: pytest.Config) -> None:
    RECORDER.update = config.getoption("--update-snapshots")


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    RECORDER.deselected.update(item.nodeid for item in items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    options = session.config.option
    if RECORDER.update and RECORDER.met:
        RECORDER.write(whole=not options.keyword and not any("::" in argument for argument in session.config.args))


def pytest_runtest_setup(item: pytest.Item) -> None:
    minutes = item.config.getoption("--stop-after")
    if minutes is not None and time.monotonic() > _STARTED + 60 * minutes:
        pytest.skip(f"after --stop-after {minutes:g} minutes")
    if item.get_closest_marker("gpu") is not None:
        import torch

        if not torch.cuda.is_available():
            pytest.skip("no CUDA device")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Of `-n logical` and `-n auto`: as many as there are processors. Each more would collect all tests once more."""
    return usable_cores()


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> None:
    """The networks of tests are fastest on one thread, and several threads wait long on a busy machine."""
    if torch := sys.modules.get("torch"):  # modules of tests that use it import it
        torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Iterator[None]:
    """Files of tests need not survive a power cut, and a case waits for the disk fifty times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield
