"""What a learner saves is tried once: new objects that load it have to answer as the learner does."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult, Predictions
from ianvs.running.session.save_load_check import _count_differing
from tests.edits import edited
from tests.errors import printed
from tests.jobs import split_rounds, write_job
from tests.marks import slow

MEANS = '''
import numpy as np

class Means:
    """Nearest class mean."""
    def __init__(self):
        self.means, self.draws = {}, np.random.default_rng(0)
    def train(self, train_data, valid_data=None):
        x, y = train_data.x.reshape(len(train_data), -1), train_data.y
        self.means |= {int(c): x[y == c].mean(0) for c in np.unique(y)}
    def predict(self, data):
        x = data.x.reshape(len(data), -1)
        if not self.means:
            return np.zeros(len(x), int)
        known = sorted(self.means)
        distances = np.stack([((x - self.means[c]) ** 2).sum(1) for c in known])
        return np.array(known)[distances.argmin(0)]
    def save(self, path):
        np.savez(path.with_suffix(".npz"), **{str(c): mean for c, mean in self.means.items()})
        return path.with_suffix(".npz")
    def load(self, path):
        self.means = {int(c): mean for c, mean in np.load(path).items()}
'''
TESTENV = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 2}
metrics: [accuracy]
"""

LOSES = {
    "saves nothing": ('for c, mean in self.means.items()})', 'for c, mean in ()})'),
    "drops a class": ('for c, mean in self.means.items()})', 'for c, mean in self.means.items() if c})'),
    "loads nothing": ("self.means = {int(c): mean for c, mean in np.load(path).items()}", "pass"),
    "rounds too far": ("mean for c, mean in self.means.items()})", "mean * 0 for c, mean in self.means.items()})"),
}  # fmt: skip


def examined(folder: Path, plugin: str, job: str = "seeds: [0]", engine: str = "inline") -> CaseResult:
    path = write_job(folder, plugin=plugin, name="Means", hyperparameters="", testenv=TESTENV, job=job, engine=engine)
    [found] = ianvs.run(path)
    return found


def test_a_model_that_comes_back_as_it_was_is_no_word_worth(tmp_path: Path) -> None:
    assert examined(tmp_path, MEANS).warnings == ()


@pytest.mark.parametrize("what", LOSES)
def test_a_save_that_loses_something_is_told_beside_the_row(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = examined(tmp_path, edited(MEANS, *LOSES[what]))
    assert (found.status, found.doubt) == ("finished", "unsaved")
    [said] = found.warnings
    printed(said)
    assert re.search(r"\d+ of \d+", capsys.readouterr().out)  # how many are answered otherwise
    assert said in (tmp_path / "ws" / "test" / "rank" / "leaderboard.md").read_text()
    assert [note.kind for note in ianvs.load_results(tmp_path / "ws").notes if said in note.text] == ["row"]


THREAD = (
    "self.means, self.draws =",
    "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n        self.means, self.draws =",
)
PROCESSES = {
    "inline": (MEANS, "seeds: [0]\nengine: inline"),
    "spawned": (MEANS, "seeds: [0]\nengine: {name: local, start: spawn}"),
    "with a thread": ("import threading, time\n" + edited(MEANS, *THREAD), "seeds: [0]\nengine: local"),
}


@pytest.mark.parametrize("how", ["inline", slow("with a thread"), slow("spawned")])
def test_it_is_tried_after_the_last_round_wherever_it_runs(tmp_path: Path, how: str) -> None:
    plugin, job = PROCESSES[how]
    whole = examined(tmp_path / "whole", plugin, job)
    assert (whole.status, whole.warnings) == ("finished", ())
    for what in ("saves nothing", "loads nothing"):
        lost = examined(tmp_path / what, edited(plugin, *LOSES[what]), job)
        assert [bool(round_.unsaved) for round_ in lost.rounds] == [False, False, True]
        [said] = lost.warnings
        printed(said)


def test_a_load_that_raises_is_told_with_its_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = edited(MEANS, "    def load(self, path):", "    def load(self, path):\n        raise KeyError('head')")
    [said] = examined(tmp_path, broken).warnings
    printed(said)
    assert "raise KeyError" in "".join(capsys.readouterr())


def test_a_process_that_ends_while_it_loads_is_a_failed_case(tmp_path: Path) -> None:
    broken = edited(MEANS, "    def load(self, path):", "    def load(self, path):\n        import os; os._exit(3)")
    found = examined(tmp_path, broken, engine="local")
    assert found.failure is not None and found.failure.error == "exit status 3"


DRAWN = "known = sorted(self.means)"


def test_draws_of_the_global_generator_are_the_same_for_both(tmp_path: Path) -> None:
    drawing = edited(MEANS, DRAWN, f"{DRAWN}\n        return np.random.choice(known, len(x))")
    assert examined(tmp_path, drawing).warnings == ()


def test_draws_of_an_own_generator_are_told_and_no_failure(tmp_path: Path) -> None:
    drawing = edited(MEANS, DRAWN, f"{DRAWN}\n        return self.draws.choice(known, len(x))")
    trained = edited(drawing, "x, y =", "self.draws.random()\n        x, y =")
    [said] = examined(tmp_path, trained).warnings
    printed(said)


def test_a_case_that_can_go_on_does_so_with_the_finding_of_before(tmp_path: Path) -> None:
    lost = examined(tmp_path, edited(MEANS, *LOSES["drops a class"]))
    assert [bool(round_.unsaved) for round_ in lost.rounds] == [False, False, True]
    split_rounds(lost.directory.parents[1])
    [again] = ianvs.run(tmp_path / "benchmarkingjob.yaml")
    assert again.warnings == lost.warnings


@pytest.mark.parametrize(
    ("now", "back", "others"),
    [
        (np.array([1, 2, 3]), np.array([1, 2, 3]), 0),
        (np.array([1, 2, 3]), np.array([1, 0, 0]), 2),
        (np.array([[0.5, 0.25]]), np.array([[0.50001, 0.25]]), 0),
        (np.array([[0.5, -np.inf], [np.nan, 1]]), np.array([[0.5, -np.inf], [np.nan, 1.1]]), 1),
        (np.zeros((2, 100, 100), np.uint8), np.arange(2)[:, None, None] * np.ones((2, 100, 100), np.uint8), 1),
        ([["a", "b"], ["c"]], [["a", "b"], ["d"]], 1),
        ([["a"]], [["a", "b"]], 1),
    ],
)
def test_answers_differ_by_sample_beyond_rounding(now: object, back: object, others: int) -> None:
    assert _count_differing([Predictions(now)], [Predictions(back)]) == others
    zeros = np.zeros(len(now))
    assert _count_differing([Predictions(zeros, {"e": now})], [Predictions(zeros, {"e": back})]) == others
