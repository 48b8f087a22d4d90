"""Every engine that the contract is held against: `pytest tests/contracts/engines --engine FILE.py:NAME` adds one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ianvs.plugins.loader import load
from ianvs.processes.engines import Engine, LocalEngine, Workload
from ianvs.processes.engines.inline import InlineEngine
from ianvs.processes.engines.ray.ray_engine import RayEngine
from tests.documents import python_of

TWO = Workload(jobs=2)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--engine", help="an engine of your own to hold against the contract too, FILE.py:NAME")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    own = metafunc.config.getoption("--engine", default=None)
    apart = ["local", "spawned", "ray", "documented", *([own] if own else [])]
    for fixture, names in (("engine", ["inline", *apart]), ("apart", apart)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, names, indirect=True)


@pytest.fixture(scope="module")
def ray_of_this_module() -> Iterator[RayEngine]:
    """Ray starts in seconds: once for all tests of a module, whose engines join it."""
    pytest.importorskip("ray")
    made = RayEngine(TWO)
    yield made
    made.close()


@pytest.fixture(scope="session")
def documented_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine of docs/add_an_engine.md, in a file of its own."""
    file = tmp_path_factory.mktemp("documented") / "command_engine.py"
    file.write_text(python_of("add_an_engine.md"))
    return file


def opened(name: str, request: pytest.FixtureRequest) -> Engine:
    if name == "inline":
        return InlineEngine(TWO)
    if name == "local":
        return LocalEngine(TWO)
    if name == "spawned":
        return LocalEngine(TWO, start="spawn")
    if name == "ray":
        request.getfixturevalue("ray_of_this_module")
        return RayEngine(TWO, address="auto")
    if name == "documented":
        name = f"{request.getfixturevalue('documented_engine')}:Command"
    file, _, class_name = name.rpartition(":")
    made: Engine = load(file, class_name).target(TWO)
    return made


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Every engine."""
    made = opened(request.param, request)
    yield made
    made.close()


@pytest.fixture
def apart(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The engines whose tasks have processes of their own."""
    made = opened(request.param, request)
    if not made.isolates:
        pytest.skip("its tasks have no processes of their own")
    yield made
    made.close()
