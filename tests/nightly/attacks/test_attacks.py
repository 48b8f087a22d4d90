"""Learners that try to cheat, one test for each way: none is ranked higher for it, or gets at what is hidden."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent, indent

import numpy as np
import pytest

import ianvs
from ianvs.base.types import CaseResult
from ianvs.results.stored import Results
from ianvs.store import CaseStore
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

HIDING = [
    "{name: class-incremental, rounds: 5}",
    "{name: domain-incremental, rotation: [0, 30, 60]}",
    "{name: task-free, rounds: 5, batch: 100}",
    "{name: online, rounds: 5, batch: 100}",
    "{name: blurred-boundary, rounds: 5, kind: blurry, M: 10}",
]


def plugin(train: str = "", predict: str = "return [0] * len(data)", head: str = "") -> str:
    """Majority, whose train() begins with `train`, and whose predict() is `predict`."""
    source = edited(
        MAJORITY, "*, round, seed):\n", "*, round, seed, folder):\n" + indent(dedent(train).strip(), " " * 8) + "\n"
    )
    begin, end = source.index("    def predict"), source.index("    def save")
    answers = "    def predict(self, data, folder):\n" + indent(dedent(predict).strip(), " " * 8) + "\n\n"
    return dedent(head) + source[:begin] + answers + source[end:]


def sat(folder: Path, source: str, scenario: str = HIDING[0], job: str = "seeds: [0]", more: str = "") -> Results:
    exam = f"dataset: {{name: digits}}\nscenario: {scenario}\nmetrics: [accuracy]\n{more}"
    return ianvs.run(write_job(folder, engine="local", plugin=source, hyperparameters="", testenv=exam, job=job))


def only(results: Results) -> CaseResult:
    [found] = results
    assert found.status == "finished", found.failure
    return found


def answers(results: Results, case: int = 0) -> list[np.ndarray]:
    """All labels that were ever answered, test set by test set."""
    found = list(results)[case]
    assert found.status == "finished", found.failure
    store = CaseStore(found.directory.parent.parent)
    rounds = range(len(found.rounds))
    return [said.labels for k in rounds for said in store.predictions(found.case.id, k).values()]


# --- the order of questions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", HIDING)
def test_the_number_of_calls_says_nothing_of_the_task(tmp_path, scenario):
    counting = plugin(
        train="self.calls = 0",
        predict="""
        self.calls = getattr(self, "calls", 0) + 1
        return [self.calls] * len(data)
    """,
    )
    assert {int(label) for labels in answers(sat(tmp_path, counting, scenario)) for label in labels} == {1}


def test_samples_of_one_task_do_not_come_together(tmp_path):
    """Answers by position: had the samples come in order, the first test set would have got nothing but zeros."""
    half = plugin(predict="return [int(i >= len(data) / 5) for i in range(len(data))]")
    first = answers(sat(tmp_path, half))[0]
    assert 0 < np.mean(first == 0) < 0.5


def test_the_order_is_another_one_after_each_round_and_the_same_in_each_run(tmp_path):
    half = plugin(predict="return [int(i >= len(data) / 2) for i in range(len(data))]")
    one, other = answers(sat(tmp_path / "a", half)), answers(sat(tmp_path / "b", half))
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))
    assert not np.array_equal(one[0], one[5])


# --- files and scores -------------------------------------------------------------------------------------------------


def test_no_case_finds_the_files_of_another_in_folders_of_its_own(tmp_path):
    """In its current folder, its folder and that of temporary files two cases may write the same names."""
    stash = plugin(
        head="import json, pathlib, tempfile",
        train="""
        places = [folder, pathlib.Path.cwd(), pathlib.Path(tempfile.gettempdir())]
        with (folder / "found.json").open("a") as file:
            file.write(json.dumps([str(place) for place in places if (place / f"stash-{1 - seed}").exists()]) + "\\n")
        for place in places:
            (place / f"stash-{seed}").write_text("class means")
    """,
    )
    for case in sat(tmp_path, stash, job="seeds: [0, 1]\njobs: 1"):
        assert case.status == "finished", case.failure
        lines = (case.directory / "files" / "found.json").read_text().splitlines()
        assert [json.loads(line) for line in lines] == [[]] * 5


def test_patching_ianvs_in_its_own_process_changes_nothing(tmp_path):
    patching = MAJORITY + dedent("""
        import ianvs.running.scoring as scoring
        import ianvs.store.case_store as store, ianvs.exam.metrics.registry as registry
        scoring.score_of = lambda *_: (1.0, None)
        scoring.score_case = lambda *_: None
        store.CaseStore.write_score = lambda *_: None
        registry.resolve = None
    """)
    honest, cheating = sat(tmp_path / "a", MAJORITY), sat(tmp_path / "b", patching)
    assert only(cheating).metrics["accuracy"] == only(honest).metrics["accuracy"]
