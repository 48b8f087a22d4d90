"""Whatever dies, everything that was finished stays, and the end is the same as if nothing had happened."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from tests.jobs import write_job

METHODS = Path(__file__).parents[3] / "testalgorithms"

NOTING = '''
import sys
sys.path.append({methods!r})
from ianvs.testalgorithms.replay.basemodel import Replay


class Noting(Replay):
    """Replay that complains when it is asked to train a round that is stored already."""

    def train(self, train_data, valid_data=None, *, round, folder, **context):
        if (folder.parent / "rounds" / str(round) / "round.json").exists():
            (folder.parent / f"trained-twice-{{round}}").touch()
        super().train(train_data, valid_data, round=round, **context)
'''
# Whether a row is in the Pareto front depends on them.
TIMES = ["Pareto", "Time", "Peak_memory_mb", "Case_seconds", "Train_seconds", "Eval_seconds"]
TIMES += ["Train_cpu_seconds", "Eval_cpu_seconds"]


def make(folder: Path, cells: int, epochs: int) -> Path:
    capacities = ", ".join(str(20 * (n + 1)) for n in range(cells))
    return write_job(
        folder,
        engine="local",
        plugin=NOTING.format(methods=str(METHODS.parent)),
        name="Noting",
        hyperparameters=f"- capacity: {{values: [{capacities}]}}\n- epochs: {{values: [{epochs}]}}",
        job="seeds: [0, 1, 2]\njobs: 2\nretries: 1",
    )


def start(path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ianvs", "-f", str(path)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def leaderboard(folder: Path) -> str:
    frame = pd.read_csv(folder / "ws" / "test" / "rank" / "all_rank.csv")
    return frame.drop(columns=TIMES).to_csv()


def undisturbed_and_chaotic(tmp_path: Path, cells: int, epochs: int, kills: int, seed: int) -> None:
    quiet, stormy = make(tmp_path / "quiet", cells, epochs), make(tmp_path / "stormy", cells, epochs)
    began = time.monotonic()
    assert start(quiet).wait() == 0
    seconds = time.monotonic() - began
    rng = random.Random(seed)
    done = 0
    while done < kills:
        process = start(stormy)
        time.sleep(rng.uniform(0.5, 1.0) * max(2.5, seconds / 3))
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
            if family and done + 1 < kills:
                rng.choice(family).kill()
                done += 1
                time.sleep(rng.uniform(0.0, 1.0))
        process.kill()
        process.wait()
        done += 1
    ended = start(stormy).wait()
    if ended:  # a case that lost both its tries to the storm runs again
        ended = start(stormy).wait()
    assert ended == 0
    assert leaderboard(tmp_path / "stormy") == leaderboard(tmp_path / "quiet")
    cases = tmp_path / "stormy" / "ws" / "cases"
    assert not list(cases.glob("*/trained-twice-*"))
    assert not list(cases.glob("*/rounds/.*"))
    assert len(list(cases.glob("*/result.json"))) == 3 * cells


@pytest.mark.slow
def test_a_job_that_is_killed_again_and_again_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    undisturbed_and_chaotic(tmp_path, cells=4, epochs=10, kills=4, seed=0)


@pytest.mark.slow
def test_twenty_kills_in_a_job_of_24_cases(tmp_path: Path) -> None:
    undisturbed_and_chaotic(tmp_path, cells=8, epochs=60, kills=20, seed=1)
