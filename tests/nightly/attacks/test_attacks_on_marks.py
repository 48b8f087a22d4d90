"""Learners that answer themselves and try to lose the mark for it: they fail, or are marked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult, Sealing
from ianvs.store import CaseStore
from tests.edits import edited
from tests.errors import printed
from tests.jobs import MAJORITY, write_job

MARK = "it goes on learning while it is tested"
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
# The learner's process is the author's: what it says of itself may be anything.
UNCHECKED = """
import ianvs.running.session.modules as modules
modules.AuthorsModule.adapts = property(lambda module: module.plugin.adapts_in_testing)
"""
THREADED = edited(
    HOARDER,
    "        self.round = round\n",
    "        self.round = round\n"
    "        if round == 5:\n"
    "            self.end.set(); self.thread.join(); del self.save\n"
    "        elif round == 1:\n"
    "            import threading\n"
    "            self.end = threading.Event(); self.save = None\n"
    "            self.thread = threading.Thread(target=self.end.wait); self.thread.start()\n",
)
# It fails once, in round 4.
FAILING = edited(
    MAJORITY,
    "round == self.fail_in_round",
    "round == 4 and not (folder / 'again').exists()",
    "round, seed):",
    "round, seed, folder):",
    "raise RuntimeError",
    "(folder / 'again').touch(); raise RuntimeError",
)


def sat(folder: Path, source: str, job: str = "seeds: [0]") -> CaseResult:
    exam = "dataset: {name: digits}\nscenario: {name: class-incremental, rounds: 5}\nmetrics: [accuracy]"
    [found] = ianvs.run(write_job(folder, plugin=source, hyperparameters="", testenv=exam, job=job))
    return found


def answers(found: CaseResult) -> set[int]:
    """Every label that was answered after the last round."""
    said = CaseStore(found.directory.parent.parent).predictions(found.case.id, len(found.rounds) - 1)
    return {int(label) for one in said.values() for label in np.unique(one.labels)}


def test_a_learner_that_no_longer_adapts_in_the_last_round_fails(tmp_path):
    found = sat(tmp_path, FLIPPING)
    assert found.failure is not None
    assert found.failure.error == "PluginError"
    printed(found.failure.message)


def test_one_that_silences_the_check_is_marked_for_all_rounds(tmp_path):
    found = sat(tmp_path, FLIPPING + UNCHECKED)
    assert found.status == "finished", found.failure
    assert answers(found) == {1}, "the attack does not work"
    assert [round_.sealing.copies for round_ in found.rounds] == ["none"] * 6
    assert found.sealing.copies == "none"
    assert MARK in found.warnings


@pytest.mark.parametrize("job", ["seeds: [0]", "seeds: [0]\nsealing: strict"])
def test_one_that_can_not_be_copied_fails_instead_of_answering_itself(tmp_path, job):
    found = sat(tmp_path, THREADED, job)
    assert found.failure is not None
    assert found.failure.error == "PluginError"
    printed(found.failure.message)


def test_one_that_adapts_only_while_a_case_is_brought_back_starts_over(tmp_path):
    """It is killed after three rounds without a mark, adapts when it is brought back, and would keep what it is asked
    then in its folder, for its third life."""
    folder_of = "lambda path: path.parents[2] / 'files'"
    dying = edited(
        HOARDER,
        "class Majority:",
        f"import os, pathlib\nfolder_of = {folder_of}\nclass Majority:\n    adapts_in_testing = False\n",
        "train_data, valid_data=None, *, round, seed):",
        "train_data, valid_data=None, *, round, seed, folder):\n"
        "        if round == 4 and not (folder / 'killed').exists():\n"
        "            (folder / 'killed').touch()\n"
        "            os.kill(os.getpid(), 9)\n",
        "        self.counts = eval(path.read_text())",
        "        self.counts = eval(path.read_text())\n"
        "        if '.scratch' in path.parts and (folder_of(path) / 'killed').exists():\n"
        "            Majority.adapts_in_testing = True\n",
    )
    found = sat(tmp_path, dying + UNCHECKED)
    assert found.status == "failed"  # killed in its second life, too: it began anew, with an empty folder
    assert found.failure.kind == "killed"
    assert "adapts_in_testing" in (found.directory / "log.txt").read_text()


def test_one_that_adapts_and_was_interrupted_is_marked(tmp_path):
    assert sat(tmp_path, edited(FAILING, "class Majority:", "class Majority:\n    adapts_in_testing = True\n")).failure
    [before] = ianvs.load_results(tmp_path / "ws")
    [found] = ianvs.run(tmp_path / "benchmarkingjob.yaml")
    assert found.status == "finished", found.failure
    assert [r.train_seconds for r in found.rounds[:4]] == [r.train_seconds for r in before.rounds]  # not taught again
    assert found.sealing.copies == "none"
    assert MARK in found.warnings


def test_rounds_of_different_kinds_are_as_good_as_the_worst():
    rounds = [Sealing("strict", "new processes", True), Sealing("normal", "forks", True)]
    assert Sealing.weakest(rounds) == Sealing("normal", "forks", True)
    assert Sealing.weakest([*rounds, Sealing("normal", "none", True)]) == Sealing("normal", "none", True)
    assert Sealing.weakest([*rounds, Sealing("normal", "forks", False)]) == Sealing("normal", "forks", False)
    assert Sealing.weakest([*rounds, Sealing("none", "none", False)]) == Sealing()


def test_rounds_in_two_engines_are_as_good_as_the_worse(tmp_path):
    """Three rounds beside the exam, the others sealed."""
    assert sat(tmp_path, FAILING, "seeds: [0]\nengine: {name: inline}").status == "failed"
    path = tmp_path / "benchmarkingjob.yaml"
    path.write_text(edited(path.read_text(), "engine: {name: inline}", "engine: {name: local}"))
    [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    assert [round_.sealing.how for round_ in found.rounds] == ["none"] * 4 + ["normal"] * 2
    assert (found.sealing.how, found.sealing.copies, found.sealing.closed) == ("none", "none", False)
