"""An author's code runs as in a script of their own: loaders with workers, processes, threads, files by name."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

import ianvs
from ianvs.base.types import CaseResult
from tests.edits import edited
from tests.jobs import write_job

TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy]
"""
MEANS = '''
import os, subprocess, sys, threading
from pathlib import Path
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Of(Dataset):
    """Samples of a view, asked for one by one."""
    def __init__(self, view):
        self.view = view
    def __len__(self):
        return len(self.view)
    def __getitem__(self, index):
        return torch.as_tensor(self.view[index]).flatten().float()


def halved(rank, folder, parts):
    torch.save(parts[rank].mean(0), f"{folder}/half-{rank}.pt")


def reduced(rank, folder, parts):
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    total = parts[rank].sum(0)
    torch.distributed.all_reduce(total)
    if rank == 0:
        torch.save(total / sum(map(len, parts)), f"{folder}/mean.pt")
    torch.distributed.destroy_process_group()


class Means:
    """Nearest class mean. how: what else its train() and predict() do, as people's code does."""
    def __init__(self, how="", workers=0, context="fork"):
        self.how, self.means = how, {}
        self.loading = {"num_workers": workers, "multiprocessing_context": context if workers else None}

    def train(self, train_data, valid_data=None, *, round, seed):
        x, y = torch.as_tensor(train_data.x).flatten(1).float(), torch.as_tensor(train_data.y)
        if self.how == "loader in train":
            pairs = list(DataLoader(TensorDataset(x, y), batch_size=64, **self.loading))
            x, y = (torch.cat(part) for part in zip(*pairs))
        for label in y.unique():
            once = label == y.min() and round == 1
            self.means[int(label)] = self.mean(x[y == label]) if once else x[y == label].mean(0)
        if self.how == "thread left running":
            threading.Thread(target=threading.Event().wait, daemon=True).start()
        if self.how == "process":
            assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout == b"1\\n"
        if self.how == "file":
            Path("best.pt").write_text(f"{seed} {round}")

    def mean(self, x):
        folder = os.getcwd()
        if self.how == "mp.spawn":
            torch.multiprocessing.spawn(halved, (folder, (x, x)), nprocs=2)
            return torch.load(f"{folder}/half-1.pt")
        if self.how == "gloo":
            Path("meet").unlink(missing_ok=True)
            torch.multiprocessing.spawn(reduced, (folder, x.tensor_split(2)), nprocs=2)
            return torch.load(f"{folder}/mean.pt")
        return x.mean(0)

    def predict(self, data, *, seed):
        if not self.means:
            return [0] * len(data)
        if self.how == "file":
            assert Path("best.pt").read_text() == f"{seed} {len(self.means) // 5}"
        x = torch.as_tensor(data.x).flatten(1).float()
        if self.how == "loader in predict":
            x = torch.cat(list(DataLoader(Of(data), batch_size=64, **self.loading)))
        known = sorted(self.means)
        distances = torch.cdist(x, torch.stack([self.means[label] for label in known]))
        return np.array(known)[distances.argmin(1)]

    def save(self, path):
        torch.save(self.means, path)

    def load(self, path):
        self.means = torch.load(path)
'''


def finished(folder: Path, hyperparameters: str, job: str = "seeds: [0]") -> list[CaseResult]:
    settings = {"hyperparameters": hyperparameters, "testenv": TESTENV, "job": job, "engine": "local"}
    path = write_job(folder, plugin=MEANS, name="Means", **settings)
    found = list(ianvs.run(path))
    assert [one.failure for one in found] == [None] * len(found)
    assert {one.doubt for one in found} == {""}
    return found


def accuracies(found: list[CaseResult]) -> set[float]:
    return {round(float(one.metrics["accuracy"] or 0), 9) for one in found}


def test_loaders_with_workers_threads_and_processes_are_its_own_affair(tmp_path: Path) -> None:
    how = "['', loader in train, loader in predict, thread left running, process, file]"
    found = finished(tmp_path, f"- how: {{values: {how}}}\n- workers: {{values: [2]}}")
    assert len(found) == 6
    [accuracy] = accuracies(found)
    assert accuracy > 0.8


@pytest.mark.slow
def test_workers_are_spawned(tmp_path: Path) -> None:
    """They are handed the plugin's own Dataset over a view, whose file has no name that Python knows."""
    grid = (
        "- how: {values: [loader in train, loader in predict]}\n- workers: {values: [1]}\n- context: {values: [spawn]}"
    )
    plain = finished(tmp_path / "plain", "- how: {values: ['']}")
    assert accuracies(finished(tmp_path, grid)) == accuracies(plain)


SPAWNS = """
import multiprocessing

def double(number):
    return 2 * number

class Spawns:
    def train(self, train_data, valid_data=None):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.map(double, [1, 2]) == [2, 4]
    def predict(self, data):
        return [0] * len(data)
    def save(self, path):
        path.write_text("")
    def load(self, path): ...
"""


def test_a_function_of_the_plugins_file_runs_in_a_spawned_process(tmp_path: Path) -> None:
    exam = edited(TESTENV, "rounds: 2", "rounds: 1")
    settings = {"hyperparameters": "", "testenv": exam, "job": "seeds: [0]", "engine": "local"}
    [found] = ianvs.run(write_job(tmp_path, plugin=SPAWNS, name="Spawns", **settings))
    assert found.status == "finished", found.failure


@pytest.mark.slow
@pytest.mark.parametrize("how", ["mp.spawn", "gloo"])
def test_torch_spawns_functions_of_the_plugins_file(tmp_path: Path, how: str) -> None:
    [found] = finished(tmp_path, f"- how: {{values: [{how}]}}")
    assert found.metrics["accuracy"] is not None and found.metrics["accuracy"] > 0.8


@pytest.mark.slow
def test_a_long_folder_for_temporary_files_is_none_for_sockets(tmp_path: Path, monkeypatch) -> None:
    """Those of multiprocessing would hold 107 bytes of its name and no more."""
    long = Path(tempfile.mkdtemp(dir=tmp_path)) / ("t" * 90)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", os.fspath(long))
    monkeypatch.setattr(tempfile, "tempdir", None)
    finished(tmp_path, "- how: {values: [loader in train, loader in predict]}\n- workers: {values: [1]}")
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert list(long.iterdir()) == []  # nothing is left


@pytest.mark.slow
def test_two_seeds_at_once_write_and_read_a_file_of_one_name(tmp_path: Path) -> None:
    found = finished(tmp_path, "- how: {values: [file]}", "seeds: [0, 1]\njobs: 2")
    assert len(found) == 2
    assert {(one.directory / "files" / "best.pt").read_text() for one in found} == {"0 2", "1 2"}


def test_a_file_beside_which_ianvs_was_started_is_named(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "weights.txt").write_text("1")
    monkeypatch.chdir(tmp_path)
    reading = MEANS.replace("        x, y = torch", "        open('weights.txt')\n        x, y = torch", 1)
    path = write_job(tmp_path, plugin=reading, name="Means", hyperparameters="", testenv=TESTENV, job="seeds: [0]")
    [found] = ianvs.run(path)
    assert found.failure is not None and found.failure.error == "FileNotFoundError"
    assert str(tmp_path / "weights.txt") in found.failure.message
