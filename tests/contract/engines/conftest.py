"""The engines that the contract is held against: ours, or with `--engine` the one that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from yaml import safe_load as parse

from ianvs.plugins.loader import load
from ianvs.processes.engines import Engine, Workload
from ianvs.processes.engines.ray.ray_engine import RayEngine
from ianvs.running.scheduler.create_engine import ENTRY_POINTS
from tests.documents import python_of
from tests.marks import slow
from tests.nightly.clusters.slurm.there import need_slurm

TWO = Workload(jobs=2)
SPAWNED = "{name: local, start: spawn}"
RAY = "{name: ray, address: auto}"


def pytest_addoption(parser: pytest.Parser) -> None:
    said = "the engine to hold against the contract: FILE.py:NAME, or what a job file says of it"
    parser.addoption("--engine", help=said)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """engine: every one. apart: those whose tasks have processes of their own. yaml: the slower tests.

    Those that start a Python for each task, and Ray, are slow.
    """
    own = metafunc.config.getoption("--engine", default=None)
    yaml = ["local", slow(SPAWNED), slow(RAY), pytest.param("slurm", marks=pytest.mark.slurm)]
    apart = [*yaml, slow("documented")]
    for fixture, ours in (("engine", ["inline", *apart]), ("apart", apart), ("apart_yaml", apart), ("yaml", yaml)):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, [own] if own else ours, indirect=True)


def option(name: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a job file says of the engine, as a mapping."""
    if name == RAY:
        request.getfixturevalue("ray_of_this_module")
    if "slurm" in name:
        need_slurm()
    if name == "documented":
        name = f"{request.getfixturevalue('documented_engine')}:Command"
    if ".py:" in name and not name.startswith("{"):
        file, _, class_name = name.rpartition(":")
        return {"name": class_name, "url": str(Path(file).resolve())}
    told = parse(name)
    return told if isinstance(told, dict) else {"name": told}


@pytest.fixture(scope="module")
def ray_of_this_module() -> Iterator[RayEngine]:
    """Ray starts in seconds: once for all tests of a module, whose engines join it."""
    pytest.importorskip("ray")
    made = RayEngine(TWO)
    yield made
    made.close()


@pytest.fixture(scope="session")
def documented_engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine of docs/extending.md#an-engine, in a file of its own."""
    file = tmp_path_factory.mktemp("documented") / "command_engine.py"
    file.write_text(python_of("extending.md", "An engine"))
    return file


def opened(name: str, request: pytest.FixtureRequest) -> Engine:
    said = option(name, request)
    kind = load(said.pop("url", None), said.pop("name"), ENTRY_POINTS).target
    made: Engine = kind(replace(TWO, workspace=request.getfixturevalue("tmp_path")), **said)
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


@pytest.fixture
def yaml(request: pytest.FixtureRequest) -> str:
    """What the job file says of the engine."""
    return json.dumps(option(request.param, request))


apart_yaml = yaml
