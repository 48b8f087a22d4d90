"""A case of another library's method that is killed in the middle of a round goes on to the scores it would have had.

Each needs its library: Avalanche in this interpreter or in that of $AVALANCHE_PYTHON, or a checkout that $MAMMOTH or
$PILOT names ($PILOT_PYTHON: the interpreter of PILOT's packages).
"""

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import ianvs
from tests.others_jobs import others_job

REPOSITORY = Path(__file__).parents[3]


def _avalanche(folder: Path, workspace: str) -> Path:
    url = str(REPOSITORY / "testalgorithms" / "adapters" / "avalanche" / "digit_strategies.py")
    python = os.environ.get("AVALANCHE_PYTHON")
    return others_job(folder, "avalanche", url, "replay", {"epochs": 9}, python=python, workspace=workspace, rounds=2)


def _mammoth(folder: Path, workspace: str) -> Path:
    url = str(Path(os.environ["MAMMOTH"]) / "models" / "derpp.py")
    given = {"lr": 0.05, "batch_size": 32, "n_epochs": 9, "buffer_size": 200, "minibatch_size": 32}
    given.update({"alpha": 0.1, "beta": 0.5})
    return others_job(folder, "mammoth", url, "Derpp", given, python=sys.executable, workspace=workspace, rounds=2)


def _pilot(folder: Path, workspace: str) -> Path:
    url, python = str(Path(os.environ["PILOT"]) / "models" / "icarl.py"), os.environ.get("PILOT_PYTHON", sys.executable)
    given = {"dataset": "plain", "picture_size": 32, "backbone": "lcnet_035", "weights": "none", "answers": "nme"}
    given.update({"init_epoch": 1, "epochs": 2, "batch_size": 64, "memory_size": 100})  # type: ignore[dict-item]
    return others_job(folder, "pilot", url, "Learner", given, python=python, workspace=workspace, rounds=2)


LIBRARIES = {
    "avalanche": (
        _avalanche,
        "AVALANCHE_PYTHON" in os.environ or find_spec("avalanche") is not None,
        "install avalanche-lib 0.6, or set AVALANCHE_PYTHON to an interpreter that has it",
    ),
    "mammoth": (_mammoth, "MAMMOTH" in os.environ, "set MAMMOTH to a checkout of Mammoth 7ab9db9"),
    "pilot": (_pilot, "PILOT" in os.environ, "set PILOT to a checkout of LAMDA-PILOT 5240714"),
}


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_killed_case_ends_with_the_scores_of_one_that_was_not(tmp_path: Path, library: str) -> None:
    make, there, remedy = LIBRARIES[library]
    if not there:
        pytest.skip(remedy)
    job = make(tmp_path, "killed")
    command = [sys.executable, "-m", "ianvs", "-f", str(job)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    while len(taught := _seconds(tmp_path / "killed")) < 2 and running.poll() is None:
        time.sleep(0.05)
    for process in _below(running.pid):  # the next round is being learnt
        os.kill(process, signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert len(taught) < 3, "it was at its end already"

    [resumed] = ianvs.run(job)
    [whole] = ianvs.run(make(tmp_path, "whole"))
    assert resumed.status == whole.status == "finished", (resumed.failure, whole.failure)
    assert {index: resumed.rounds[index].train_seconds for index in taught} == taught  # none was taught again
    first, second = (found.matrices["accuracy"].values for found in (resumed, whole))
    assert np.array_equal(first, second, equal_nan=True)


def _seconds(workspace: Path) -> dict[int, float]:
    """What the training of each complete round took, the untrained one (0) among them."""
    files = workspace.glob("cases/*/rounds/[0-9]/round.json")
    return {int(file.parent.name): json.loads(file.read_text())["train_seconds"] for file in files}


def _below(process: int) -> list[int]:
    """A process with all that it started, the first one first."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [process, *(one for child in children for one in _below(int(child)))]
