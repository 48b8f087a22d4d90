"""What a job promises on every engine that gives cases processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

import ianvs
from ianvs.types import CaseResult
from tests.jobs import MAJORITY, write_job


@pytest.fixture(scope="module")
def ray_of_this_module() -> Iterator[None]:
    """Ray starts in seconds: once for all tests here, whose jobs join it."""
    pytest.importorskip("ray")
    from ianvs.engines.ray.ray_engine import RayEngine

    made = RayEngine("local", jobs=2)
    yield
    made.close()


@pytest.fixture(params=["local", "{name: ray, address: auto}"], ids=["local", "ray"])
def engine(request: pytest.FixtureRequest) -> str:
    """What the job file says of the engine."""
    if "ray" in request.param:
        request.getfixturevalue("ray_of_this_module")
    return str(request.param)


def run(folder: Path, engine: str, what: str, extra: str = "") -> tuple[CaseResult, CaseResult]:
    """Two cases, of seeds 0 and 1; the first does `what` in round 3."""
    then = indent(f"if (round, seed) == (3, 0):\n{indent(what, '    ')}\n", 8 * " ")
    plugin = MAJORITY.replace("        for label in", f"{then}        for label in")
    job = f"seeds: [0, 1]\njobs: 2\nengine: {engine}\n{extra}"
    first, second = ianvs.run(write_job(folder, plugin=plugin, hyperparameters="", job=job))
    return first, second


def test_an_exception_is_a_row(tmp_path: Path, engine: str) -> None:
    failed, other = run(tmp_path, engine, "raise ValueError('no cheese')")
    assert failed.failure is not None
    assert (failed.failure.error, failed.failure.message, other.status) == ("ValueError", "no cheese", "finished")


def test_a_case_that_hangs_is_ended(tmp_path: Path, engine: str) -> None:
    limits = "limits: {round_seconds: 1, grace_seconds: 0.2}"
    hung, other = run(tmp_path, engine, "import time; time.sleep(120)", limits)
    assert hung.failure is not None
    assert (hung.failure.kind, len(hung.rounds), other.status) == ("timeout", 3, "finished")


def test_a_case_over_its_memory_is_ended(tmp_path: Path, engine: str) -> None:
    eat = "import numpy, time; x = numpy.ones(100_000_000); time.sleep(120)"
    eater, other = run(tmp_path, engine, eat, "limits: {memory_mb: 600}")
    assert eater.failure is not None
    assert (eater.failure.kind, other.status) == ("memory", "finished")


@pytest.mark.parametrize("death", ["os.kill(os.getpid(), 9)", "ctypes.string_at(0)"])
def test_a_case_that_dies_once_is_tried_again_and_finishes(tmp_path: Path, engine: str, death: str) -> None:
    flag = tmp_path / "flag"
    die_once = f"import ctypes, os, pathlib\nf = pathlib.Path({str(flag)!r})\nf.exists() or (f.touch(), {death})"
    died, other = run(tmp_path, engine, die_once)
    assert (died.status, other.status) == ("finished", "finished")
    assert flag.exists()


def test_a_case_that_dies_every_time_is_a_row(tmp_path: Path, engine: str) -> None:
    dead, other = run(tmp_path, engine, "import os\nos.kill(os.getpid(), 9)")
    assert dead.failure is not None
    assert (dead.failure.kind, dead.failure.error, other.status) == ("killed", "SIGKILL", "finished")
