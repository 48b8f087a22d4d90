"""A paradigm in one file of an author's, and data in another: both run to the end, and survive a kill in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest

import ianvs
from ianvs.store import CaseStore
from tests.edits import edited
from tests.errors import Found, errors_of
from tests.waiting import wait_for

EXAMPLE = Path(__file__).parents[3] / "examples" / "own_paradigm"

SPIRALS = '''
import numpy as np


def spirals(samples=300, seed=0):
    """Two arms a domain, turned by its angle."""
    parts = {}
    for part, shift in (("train", 0), ("test", 1)):
        rng = np.random.default_rng(seed + shift)
        x, y, domains = [], [], []
        for angle in (0, 40, 80):
            label = rng.integers(0, 2, samples)
            t = rng.uniform(0.2, 2, samples)
            way = t + np.pi * label + np.radians(angle)
            x.append(np.stack([t * np.cos(way), t * np.sin(way)], 1) + rng.normal(0, 0.05, (samples, 2)))
            y.append(label)
            domains += [f"turned {angle}"] * samples
        parts[part] = {"x": np.concatenate(x).astype("float32"), "y": np.concatenate(y), "domain": domains}
    return parts
'''


def write(folder: Path, slow: str = "") -> Path:
    """The example's files, with data of the author's own; `slow` is a statement at the beginning of train()."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("workspace", "__pycache__"))
    (folder / "spirals.py").write_text(SPIRALS)
    (folder / "testenv.yaml").write_text(
        "testenv:\n  dataset: {name: spirals, url: ./spirals.py, samples: 120}\n"
        "  scenario: domain-incremental\n  metrics: [accuracy, BWT]\n"
    )
    for name in ("algorithm.yaml", "central.yaml"):
        text = edited((folder / name).read_text(), "values: [64]", "values: [2]", "values: [10]", "values: [2]")
        (folder / name).write_text(text)
    plugin = (folder / "modules.py").read_text()
    here = "    def train(self, train_data, valid_data=None):\n"
    (folder / "modules.py").write_text(edited(plugin, here, f"{here}        {slow}\n") if slow else plugin)
    return folder / "benchmarkingjob.yaml"


def scores(workspace: Path) -> dict[str, str]:
    """What is stored of every case: by algorithm and hyperparameters, the predictions of all rounds."""
    found = {}
    store = CaseStore(workspace)
    for path in sorted((workspace / "cases").glob("*/case.json")):
        case = store.case(path.parent.name)
        assert case is not None
        rounds = [store.predictions(case.id, k.index) for k in store.complete_rounds(case.id)]
        said = [{asked: one.labels.tolist() for asked, one in answers.items()} for answers in rounds]
        found[f"{case.algorithm} {case.hyperparameters}"] = repr(said)
    return found


def test_it_runs_with_its_modules_its_data_and_its_measures(tmp_path: Path) -> None:
    results = ianvs.run(write(tmp_path / "job"), workspace=tmp_path / "ws", engine="inline")
    assert results.exit_code == 0
    federated = [found for found in results if found.case.algorithm == "federated"]
    assert len(federated) == 4  # two learning rates x two momenta: both modules are in the grid
    # Three clients send 3 x 2 numbers of 8 bytes, twice a round, in three rounds.
    assert {found.metrics["accuracy"] is not None for found in federated} == {True}
    frame = pd.read_csv(tmp_path / "ws" / "own_paradigm" / "rank" / "all_rank.csv")
    of = frame[frame.Algorithm == "federated"]
    assert of.Uploaded_mb.round(9).tolist() == [round(3 * 2 * 3 * 6 * 8 / 1e6, 9)] * 4
    assert frame[frame.Algorithm == "central"].Uploaded_mb.isna().all()
    assert sorted(of["Aggregation-momentum"]) == [0, 0, 0.3, 0.3]
    assert set(of.Aggregation) == {"ServerMomentum"}
    assert set(of.Paradigm) == {"FederatedAveraging"}
    assert set(of.Dataset) == {"spirals"}


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_no_trace_in_the_result(tmp_path: Path) -> None:
    quiet = write(tmp_path / "quiet")
    ianvs.run(quiet, workspace=tmp_path / "ws-quiet")
    stormy = write(tmp_path / "quiet2", slow="__import__('time').sleep(0.15)")
    ws = tmp_path / "ws-stormy"
    process = subprocess.Popen(
        [sys.executable, "-m", "ianvs", "-f", str(stormy), "--workspace", str(ws)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_for(lambda: list(ws.glob("cases/*/rounds/2/round.json")))
    forked = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (ws / "own_paradigm" / "rank" / "all_rank.csv").exists()
    wait_for(lambda: not any(child.is_running() for child in forked))  # they end with their supervisor
    before = {
        (file.parts[-4], int(file.parts[-2])): json.loads(file.read_text())["train_seconds"]
        for file in ws.glob("cases/*/rounds/[0-9]/round.json")
    }
    results = ianvs.run(stormy, workspace=ws)
    assert results.exit_code == 0
    after = {(found.case.id, one.index): one.train_seconds for found in results for one in found.rounds}
    assert before.items() <= after.items()  # none of these rounds was taught again
    assert scores(ws) == scores(tmp_path / "ws-quiet")


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("clients: 3", "clients: three", ("invalid-option", "algorithm.yaml:3:3")),
        ("clients: 3", "clinets: 3", ("invalid-option", "algorithm.yaml:3:3")),
        ("name: FederatedAveraging", "name: Federated", ("invalid-option", "algorithm.yaml:2:25")),
        ("type: aggregation", "type: agregation", ("invalid-choice", "algorithm.yaml:13:13")),
        ("name: ServerMomentum", "name: SoftmaxRegression", ("broken-contract", "algorithm.yaml:14:13")),
    ],
)
def test_slips_are_told_before_anything_runs(tmp_path: Path, old: str, new: str, error: Found) -> None:
    path = write(tmp_path / "job")
    file = tmp_path / "job" / "algorithm.yaml"
    file.write_text(edited(file.read_text(), old, new))
    for check in (ianvs.validate, ianvs.run):
        found = errors_of(check, path, workspace=tmp_path / "ws", engine="inline")
        assert error in [(code, location.rpartition("/")[2]) for code, location in found]


def test_a_module_that_is_missing_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "job")
    file = tmp_path / "job" / "algorithm.yaml"
    text = file.read_text()
    file.write_text(text[: text.index("    - type: aggregation")])
    assert errors_of(ianvs.validate, path, workspace=tmp_path / "ws", engine="inline") == [
        ("missing-module", f"{tmp_path}/job/algorithm.yaml:5:3")
    ]


def test_shares_of_a_round_are_disjoint_and_alike(tmp_path: Path) -> None:
    note = "np.save(f'{__file__}-{id(self)}-{len(train_data)}.npy', train_data.x)"
    path = write(tmp_path / "job", slow=note)
    text = edited((tmp_path / "job" / "algorithm.yaml").read_text(), "exchanges: 2", "exchanges: 1")
    (tmp_path / "job" / "algorithm.yaml").write_text(edited(text, "[0.1, 0.5]", "[0.1]", "[0.0, 0.3]", "[0.0]"))
    (tmp_path / "job" / "central.yaml").write_text(
        edited((tmp_path / "job" / "central.yaml").read_text(), "[0.1, 0.5]", "[0.1]")
    )
    ianvs.run(path, workspace=tmp_path / "ws", engine="inline")
    sizes = sorted(len(np.load(file)) for file in (tmp_path / "job").glob("modules.py-*.npy"))
    assert sizes == [40, 40, 40, 120]  # of the last round: each client a third, the central one all
