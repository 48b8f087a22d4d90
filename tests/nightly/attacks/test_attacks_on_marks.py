"""Learners that keep what they are asked: they are marked, fail, or answer by a second object."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ianvs
from ianvs.base.types import CaseResult
from ianvs.store import CaseStore
from tests.edits import edited
from tests.errors import printed
from tests.jobs import MAJORITY, write_job

# It answers 1 as soon as it has kept a sample that it was asked about.
HOARDER = edited(
    MAJORITY,
    "class Majority:",
    "class Majority:\n    hoard, round = (), 0\n",
    "        return [max(counts, key=counts.get)] * len(data)",
    "        self.hoard, seen = (*self.hoard, data.x[0]), len(self.hoard) > 0\n        return [int(seen)] * len(data)",
    "        if round == self.fail_in_round:",
    "        self.round = round\n        if round == self.fail_in_round:",
)
FLIPPING = edited(
    HOARDER, "class Majority:", "class Majority:\n    adapts_in_testing = property(lambda self: self.round < 5)\n"
)
# It fails in round 4 where there is no file `again` beside it.
FAILING = edited(
    HOARDER,
    "class Majority:",
    "import pathlib\n\nclass Majority:\n    adapts_in_testing = True\n",
    "round == self.fail_in_round",
    "round == 4 and not pathlib.Path(__file__).with_name('again').exists()",
)


def sat(folder: Path, source: str, job: str = "seeds: [0]") -> CaseResult:
    exam = "dataset: {name: digits}\nscenario: {name: class-incremental, rounds: 5}\nmetrics: [accuracy]"
    [found] = ianvs.run(write_job(folder, engine="local", plugin=source, hyperparameters="", testenv=exam, job=job))
    return found


def answers(found: CaseResult) -> set[int]:
    """Every label that was answered after the last round."""
    said = CaseStore(found.directory.parent.parent).predictions(found.case.id, len(found.rounds) - 1)
    return {int(label) for one in said.values() for label in np.unique(one.labels)}


def test_one_that_keeps_what_it_is_asked_is_marked_and_takes_no_rank(tmp_path):
    found = sat(tmp_path, HOARDER)
    assert found.status == "finished", found.failure
    assert answers(found) == {1}, "the attack does not work"
    assert found.doubt == "changed"
    assert ["hoard" in round_.changed for round_ in found.rounds] == [False] + [True] * 5
    [row] = ianvs.load_results(tmp_path / "ws").leaderboard.rows
    assert (row.rank, row.doubt) == (None, "changed")


def test_a_learner_that_no_longer_adapts_in_the_last_round_fails(tmp_path):
    found = sat(tmp_path, FLIPPING)
    assert found.failure is not None
    assert found.failure.error == "PluginError"
    printed(found.failure.message)


def test_one_that_adapts_and_was_interrupted_goes_on(tmp_path):
    assert sat(tmp_path, FAILING).failure
    [before] = ianvs.load_results(tmp_path / "ws")
    (tmp_path / "again").touch()
    [found] = ianvs.run(tmp_path / "benchmarkingjob.yaml")
    assert found.status == "finished", found.failure
    assert [r.train_seconds for r in found.rounds[:4]] == [r.train_seconds for r in before.rounds]  # not trained again
    assert answers(found) == {0}, "it has kept a sample"
    assert found.doubt == ""


def test_one_that_adapts_and_has_no_save_fails_instead_of_answering_itself(tmp_path):
    adapting = edited(
        HOARDER,
        "class Majority:",
        "class Majority:\n    adapts_in_testing = True\n",
        "        self.bias,",
        "        self.save = None\n        self.bias,",
    )
    found = sat(tmp_path, adapting)
    assert found.failure is not None
    assert found.failure.error == "PluginError"
    printed(found.failure.message)
