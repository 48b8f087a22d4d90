"""`storage: encoded` and `storage: decoded` are the same exam: every answer is equal to the last bit."""

import io
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ianvs
from ianvs.cli.command_line import main
from ianvs.exam.data import parts
from ianvs.exam.data.cache_entries import cache_entries
from ianvs.running.scheduler.case_loop import Listener
from ianvs.store import CaseStore
from tests.edits import edited
from tests.jobs import write_job

FINETUNE = "from ianvs.testalgorithms.finetune.basemodel import Finetune\n"

READS = '''
import numpy as np, torch

class Reads:
    """Goes over its data in every way that there is, and answers by what it has seen."""

    def __init__(self):
        self.seen = 0

    def train(self, train_data, valid_data=None, *, round):
        x, y = train_data.tensors()
        for batch, labels in train_data.loader(3, generator=torch.Generator().manual_seed(round)):
            self.seen = (self.seen * 31 + int(batch.long().sum()) + int(labels.long().sum())) % 1009
        self.seen += int(x[torch.tensor([0, 2])].long().sum()) + int(y[0].long().sum()) + int(train_data.x[1].sum())
        self.seen += sum(int(one.sum()) for one in train_data.part([0, 1]).unlabelled())
        if valid_data is not None:
            self.seen += int(valid_data.x.astype(int).sum())

    def predict(self, data):
        some = int(data[0].sum()) + int(data[-2:].sum()) + sum(int(batch.long().sum()) for batch in data.loader(4))
        each = [(self.seen + some + int(one.sum())) % CLASSES for one in data]
        return SHAPED(each, data)

    def save(self, path):
        path.with_suffix(".txt").write_text(str(self.seen))
        return path.with_suffix(".txt")

    def load(self, path):
        self.seen = int(path.read_text())
'''
OF_CLASSES = "CLASSES, SHAPED = 4, lambda each, data: each\n"
OF_PIXELS = (
    "CLASSES = 3\ndef SHAPED(each, data):\n    return np.uint8([np.full(data.x.shape[1:3], one) for one in each])\n"
)
IN_WORKERS = """
import torch
from torch.utils.data import DataLoader, TensorDataset

class InWorkers:
    def __init__(self):
        self.sums = []

    def train(self, train_data):
        x, y = train_data.tensors()
        loader = DataLoader(TensorDataset(x, y), batch_size=8, num_workers=2)
        self.sums = [int(batch.long().sum()) for batch, _ in loader]

    def predict(self, data):
        return [sum(self.sums) % 4] * len(data)

    def save(self, path):
        path.with_suffix(".txt").write_text(str(self.sums))
        return path.with_suffix(".txt")

    def load(self, path):
        self.sums = eval(path.read_text())
"""


def folders_of_classes(folder):
    draws = np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 5)):
        for index in range(4 * count):
            path = folder / part / f"c{index % 4}" / f"{index}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            pixels = draws.integers(0, 90, (12, 10, 3)) + 40 * (index % 4)
            Image.fromarray(pixels.astype(np.uint8)).save(path)
    return f"{{train_data: {folder}/train, test_data: {folder}/test, image_size: [9, 8], storage: STORAGE}}"


def labelled_pixels(folder):
    draws = np.random.default_rng(0)
    for part, count in (("train", 12), ("test", 70)):  # more than are asked at once
        (folder / part).mkdir(parents=True, exist_ok=True)
        lines = []
        for index in range(count):
            names = [folder / part / f"{index}.jpg", folder / part / f"{index}_label.png"]
            Image.fromarray(draws.integers(0, 256, (8, 12, 3), np.uint8)).save(names[0])
            Image.fromarray(draws.choice([0, 1, 2, 255], (8, 12)).astype(np.uint8)).save(names[1])
            lines.append(" ".join(map(str, names)))
        (folder / f"{part}.txt").write_text("\n".join(lines))
    return f"{{train_index: {folder}/train.txt, test_index: {folder}/test.txt, storage: STORAGE}}"


TWO = "{name: class-incremental, rounds: 2}"
CASES = {
    "built in": (FINETUNE, "Finetune", "", folders_of_classes, TWO, "threads: 1"),
    "threads": (FINETUNE, "Finetune", "", folders_of_classes, TWO, "threads: 2"),
    "inline": (READS + OF_CLASSES, "Reads", "", folders_of_classes, TWO, "engine: inline"),
    "every way": (READS + OF_CLASSES, "Reads", "", folders_of_classes, TWO, "threads: 2"),
    "second objects": (
        edited(READS, "class Reads:", "class Reads:\n    adapts_in_testing = True\n") + OF_CLASSES, "Reads", "",
        folders_of_classes, TWO, "",
    ),
    "transformed": (
        READS + OF_CLASSES, "Reads", "", folders_of_classes, "{name: domain-incremental, rotation: [0, 30]}", ""
    ),
    "stream": (READS + OF_CLASSES, "Reads", "", folders_of_classes, "{name: task-free, rounds: 2, batch: 6}", ""),
    "label pictures": (READS + OF_PIXELS, "Reads", "", labelled_pixels, "", "threads: 2"),
    "workers": (IN_WORKERS, "InWorkers", "", folders_of_classes, TWO, ""),
    "held out": (
        READS + OF_CLASSES, "Reads", "model_eval: {model_metric: {name: accuracy}, threshold: 0, operator: '>='}",
        folders_of_classes, TWO, "",
    ),
}  # fmt: skip


def answers(folder, storage, source, name, more, dataset, scenario, job):
    testenv = (
        f"dataset: {dataset.replace('STORAGE', storage)}\nmetrics: [{'mIoU' if not scenario else 'accuracy'}]\n{more}"
    )
    if scenario:
        testenv += f"\nscenario: {scenario}"
    score = "mIoU" if not scenario else "accuracy"
    written = write_job(
        folder / storage,
        engine="local", plugin=source, name=name, hyperparameters="", testenv=testenv, job=f"seeds: [0]\n{job}",
        sort_by=f"[{{{score}: descend}}]",
    )  # fmt: skip
    [found] = ianvs.run(written)
    assert found.status == "finished", found.failure
    store = CaseStore(found.directory.parent.parent)
    said = [store.predictions(found.case.id, k) for k in range(len(found.rounds))]
    return found, [{key: (one.labels.tolist(), *map(str, one.extras)) for key, one in row.items()} for row in said]


@pytest.mark.parametrize("case", CASES)
def test_answers_and_scores_are_equal(tmp_path, case):
    source, name, more, make, scenario, job = CASES[case]
    dataset = make(tmp_path / "data")
    told = [
        answers(tmp_path, storage, source, name, more, dataset, scenario, job) for storage in ("decoded", "encoded")
    ]
    (decoded, said), (encoded, again) = told
    assert said == again
    assert any(labels for row in said for labels, *_ in row.values())
    assert decoded.case.id == encoded.case.id
    assert decoded.metrics == encoded.metrics and decoded.metrics
    assert not list(Path(tmp_path / "encoded" / "ws" / "cache").glob("rgb-*"))


def test_validate_decodes_a_sample_says_so_and_names_what_is_broken(tmp_path):
    dataset = folders_of_classes(tmp_path / "data").replace("STORAGE", "encoded")
    testenv = f"dataset: {dataset}\nscenario: {TWO}\nmetrics: [accuracy]"
    job = write_job(tmp_path, engine="local", testenv=testenv)
    said = io.StringIO()
    with redirect_stderr(said):
        assert main(["validate", str(job)]) == 0
    assert "68 of 68 " in said.getvalue()
    assert not [one for one in cache_entries(tmp_path / "ws" / "cache") if one.description == "decoded images"]
    broken = tmp_path / "data" / "test" / "c1" / "5.png"
    broken.write_bytes(broken.read_bytes()[:60])
    with redirect_stderr(said):
        assert main(["validate", str(job)]) == 2
    assert f"{broken}: " in said.getvalue().replace("\n", "")


def test_a_file_that_changes_while_cases_run_ends_them_with_a_message(tmp_path):
    dataset = folders_of_classes(tmp_path / "data").replace("STORAGE", "encoded")
    victim = tmp_path / "data" / "test" / "c1" / "5.png"
    changing = OF_CLASSES + edited(READS, "    def train(self", "    def train_(self").replace(
        "class Reads:", "class Reads:\n    def train(self, train_data):\n        self.seen = 1\n"
    )
    testenv = f"dataset: {dataset}\nscenario: {TWO}\nmetrics: [accuracy]"
    job = write_job(
        tmp_path, engine="local", plugin=changing, name="Reads", hyperparameters="", testenv=testenv, job="seeds: [0]"
    )

    class Late(Listener):
        def started(self, case):
            Image.fromarray(np.zeros((12, 10, 3), np.uint8)).save(victim)

    [found] = ianvs.run(job, listener=Late())
    assert found.status == "failed"
    assert found.failure.error == "SourceError" and str(victim.name) in found.failure.message


@pytest.mark.parametrize("kept", [0, 1 << 30])
def test_large_columns_that_are_read_row_by_row_are_the_same(tmp_path, monkeypatch, kept):
    """Inline, where the limits can be set."""
    source, name, more, make, scenario, job = CASES["inline"]
    dataset = make(tmp_path / "data")
    _, said = answers(tmp_path / "whole", "decoded", source, name, more, dataset, scenario, job)
    monkeypatch.setattr(parts, "LARGE", 0)
    monkeypatch.setattr(parts, "_KEPT", kept)
    _, again = answers(tmp_path / "rows", "decoded", source, name, more, dataset, scenario, job)
    assert said == again
