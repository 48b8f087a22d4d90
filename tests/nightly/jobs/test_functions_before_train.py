"""How much of ianvs somebody has to read who follows a job to the first line of a plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

from tests.jobs import write_job

MOST_FUNCTIONS = 500
MOST_FRAMES = 8
PLUGIN = """
class Trivial:
    def train(self, train_data, valid_data=None):
        self.label = int(train_data.y[0])

    def predict(self, data):
        return [self.label] * len(data)

    def save(self, path):
        path.write_text(str(self.label))

    def load(self, path):
        self.label = int(path.read_text())
"""
TESTENV = """
dataset: {train_data: train.txt, test_data: test.txt}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy]
"""


def test_functions_and_frames_before_the_first_train(tmp_path: Path) -> None:
    """40 images of four classes in index files, two rounds, a plugin that does nothing, the default engine."""
    job = write_job(
        tmp_path, engine="local", plugin=PLUGIN, name="Trivial", hyperparameters="", testenv=TESTENV, job="seeds: [0]"
    )
    _write_images(tmp_path)
    counted = tmp_path / "counted"
    counted.mkdir()
    environment = {**os.environ, "COUNTED_FUNCTIONS": str(counted)}
    environment["PYTHONPATH"] = str(Path(__file__).with_name("function_counter"))
    command = [sys.executable, "-m", "ianvs", "run", "-f", str(job)]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, stdout=-1, stderr=subprocess.STDOUT)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output

    frames = (counted / "frames").read_text().splitlines()
    assert frames[0] == "run_case"
    assert len(frames) <= MOST_FRAMES, frames

    called = _functions(counted / str(process.pid)) | _functions(counted / "case")
    by_wing = Counter(function.split("/ianvs/")[-1].split("/")[0].partition(":")[0] for function in called)
    assert by_wing["running"] > 50  # that anything is counted at all
    assert len(called) <= MOST_FUNCTIONS, by_wing.most_common()
    print(len(called), dict(by_wing.most_common()))


def _functions(file: Path) -> set[str]:
    """Those with a name and lambdas: a comprehension is a part of the function in which it is.

    Without what lets former names work for one release: it changes classes when they are imported, and no job.
    """
    lines = file.read_text().splitlines()
    return {line for line in lines if not line.endswith(("comp>", "<genexpr>")) and "/former_names.py:" not in line}


def _write_images(folder: Path) -> None:
    generator = np.random.default_rng(0)
    (folder / "images").mkdir()
    lines: dict[str, list[str]] = {"train": [], "test": []}
    for number in range(40):
        name = f"images/{number}.png"
        Image.fromarray(generator.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(folder / name)
        lines["test" if number % 4 == 0 else "train"].append(f"{name} {number // 4 % 4}\n")
    for part, listed in lines.items():
        (folder / f"{part}.txt").write_text("".join(listed))
