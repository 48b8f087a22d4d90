"""What a job promises on every engine that gives cases processes of their own."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

import ianvs
from ianvs.base.types import CaseResult
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

pytestmark = pytest.mark.slow  # of the local engine, tests/contract/running/scheduler/test_supervision.py is quick


def run(folder: Path, yaml: str, what: str, extra: str = "") -> tuple[CaseResult, CaseResult]:
    """Two cases, of seeds 0 and 1; the first does `what` in round 3."""
    then = indent(f"if (round, seed) == (3, 0):\n{indent(what, '    ')}\n", 8 * " ")
    plugin = edited(MAJORITY, "        for label in", f"{then}        for label in")
    job = f"seeds: [0, 1]\njobs: 2\nengine: {yaml}\n{extra}"
    first, second = ianvs.run(write_job(folder, plugin=plugin, hyperparameters="", job=job))
    return first, second


def test_an_exception_is_a_row(tmp_path: Path, yaml: str) -> None:
    failed, other = run(tmp_path, yaml, "raise ValueError('no cheese')")
    assert failed.failure is not None
    assert (failed.failure.error, other.status) == ("ValueError", "finished")
    assert failed.failure.message.startswith("plugin.py:")
    assert failed.failure.message.endswith("no cheese")


def test_a_case_that_hangs_is_ended(tmp_path: Path, yaml: str) -> None:
    limits = "limits: {round_seconds: 10, grace_seconds: 0.2}"  # a round of the other case needs far less
    hung, other = run(tmp_path, yaml, "import time; time.sleep(3600)", limits)
    assert hung.failure is not None
    assert (hung.failure.kind, len(hung.rounds), other.status) == ("timeout", 3, "finished")


def test_a_case_over_its_memory_is_ended(tmp_path: Path, yaml: str) -> None:
    eat = "import numpy, time; x = numpy.ones(100_000_000); time.sleep(3600)"
    eater, other = run(tmp_path, yaml, eat, "limits: {memory_mb: 600}")
    assert eater.failure is not None
    assert (eater.failure.kind, other.status) == ("memory", "finished")


@pytest.mark.parametrize("death", ["os.kill(os.getpid(), 9)", "ctypes.string_at(0)"])
def test_a_case_that_dies_once_is_tried_again_and_finishes(tmp_path: Path, yaml: str, death: str) -> None:
    flag = tmp_path / "notes" / "flag"
    flag.parent.mkdir()
    die_once = f"import ctypes, os, pathlib\nf = pathlib.Path({str(flag)!r})\nf.exists() or (f.touch(), {death})"
    died, other = run(tmp_path, yaml, die_once)
    assert (died.status, other.status) == ("finished", "finished")
    assert flag.exists()


def test_a_case_that_dies_every_time_is_a_row(tmp_path: Path, yaml: str) -> None:
    dead, other = run(tmp_path, yaml, "import os\nos.kill(os.getpid(), 9)")
    assert dead.failure is not None
    assert (dead.failure.kind, dead.failure.error, other.status) == ("killed", "SIGKILL", "finished")
