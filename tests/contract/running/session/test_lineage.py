"""More rounds continue from fewer."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import ianvs
from tests.edits import edited
from tests.families import family
from tests.jobs import MAJORITY, unpack_cases, write_job

ROTATED = """
dataset: {name: digits}
scenario: {name: domain-incremental, rotation: %s}
metrics: [accuracy, BWT, FWT]
"""


def run(folder: Path, angles: str, ws: Path, plugin: str = MAJORITY) -> ianvs.Results:
    path = write_job(
        folder, testenv=ROTATED % angles, plugin=plugin, hyperparameters="- bias: {values: [0]}", job="seeds: [0]"
    )
    return ianvs.run(path, workspace=ws, engine="inline")


def noting(file: Path) -> str:
    note = f"        print(round, file=open({str(file)!r}, 'a'), flush=True)\n"
    return edited(MAJORITY, "        for label in", f"{note}        for label in")


@pytest.mark.slow
def test_more_rounds_train_only_the_new_ones_and_end_with_the_same_scores(tmp_path: Path) -> None:
    trained = tmp_path / "trained"
    run(tmp_path / "few", "[0, 90]", tmp_path / "ws", noting(trained))
    [longer] = run(tmp_path / "more", "[0, 90, 180, 270]", tmp_path / "ws", noting(trained))
    assert trained.read_text().split() == ["1", "2", "3", "4"]
    [whole] = run(tmp_path / "more", "[0, 90, 180, 270]", tmp_path / "other", MAJORITY)
    ours, theirs = longer.matrices["accuracy"].values, whole.matrices["accuracy"].values
    # What the shorter exam could not ask its earlier models is empty; everything else is equal.
    empty = np.isnan(ours)
    assert np.argwhere(empty).tolist() == [[1, 2], [1, 3]]
    assert (ours[~empty] == theirs[~empty]).all()
    assert (longer.metrics["BWT"], longer.metrics["FWT"]) == (whole.metrics["BWT"], whole.metrics["FWT"])
    assert [found.taken_from is not None for found in longer.rounds] == [False, True, True, False, False]


@pytest.mark.parametrize("angles", ["[0, 45, 180]", "[90, 0, 180]"])
def test_other_rounds_are_trained_anew(tmp_path: Path, angles: str) -> None:
    trained = tmp_path / "trained"
    run(tmp_path / "few", "[0, 90]", tmp_path / "ws", noting(trained))
    trained.unlink()
    run(tmp_path / "more", angles, tmp_path / "ws", noting(trained))
    assert trained.read_text().split() == ["1", "2", "3"]


FILES = """
dataset: {train_url: ./train.npz, test_url: ./%s.npz}
scenario: {name: class-incremental, rounds: 3}
metrics: [accuracy, BWT, FM, AIA]
"""


def on_files(folder: Path, test: str, plugin: str) -> ianvs.Results:
    path = write_job(
        folder, testenv=FILES % test, plugin=plugin, hyperparameters="- bias: {values: [0]}", job="seeds: [0]"
    )
    return ianvs.run(path, workspace=folder / "ws", engine="inline")


def test_with_another_test_set_alone_the_rounds_are_run_again_and_nothing_is_blank(tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    for name in ("train", "test", "other"):
        np.savez(tmp_path / f"{name}.npz", x=dice.normal(size=(60, 4)), y=np.arange(60) % 3)
    trained = tmp_path / "trained"
    on_files(tmp_path, "test", noting(trained))
    trained.unlink()
    [found] = on_files(tmp_path, "other", noting(trained))
    assert trained.read_text().split() == ["1", "2", "3"]
    assert not any(np.isnan(matrix.values).any() for matrix in found.matrices.values())
    assert None not in found.metrics.values()


def test_a_beginning_is_not_continued_where_a_metric_reads_what_its_models_were_not_asked(tmp_path: Path) -> None:
    trained = tmp_path / "trained"
    run(tmp_path / "few", "[0, 90]", tmp_path / "ws", noting(trained))
    trained.unlink()
    exam = (ROTATED % "[0, 90, 180]").replace("FWT", "CLEAR_forward_transfer")
    path = write_job(
        tmp_path / "more",
        testenv=exam,
        plugin=noting(trained),
        hyperparameters="- bias: {values: [0]}",
        job="seeds: [0]",
    )
    [found] = ianvs.run(path, workspace=tmp_path / "ws", engine="inline")
    assert trained.read_text().split() == ["1", "2", "3"]
    assert None not in found.metrics.values()


def test_a_model_that_load_does_not_bring_back_is_not_continued(tmp_path: Path) -> None:
    trained = tmp_path / "trained"
    forgetful = edited(noting(trained), "self.counts = eval(path.read_text())", "self.counts = {9: 1}")
    run(tmp_path / "few", "[0, 90]", tmp_path / "ws", forgetful)
    trained.unlink()
    [found] = run(tmp_path / "more", "[0, 90, 180]", tmp_path / "ws", forgetful)
    assert trained.read_text().split() == ["1", "2", "3"]
    assert (found.status, [r.taken_from for r in found.rounds]) == ("finished", [None] * 4)


PROBED = """
dataset: {name: digits}
scenario: {name: class-incremental, rounds: 2}
linear_probe: %s
metrics: [%s]
"""
FEATURES = (
    MAJORITY
    + """
    def features(self, data):
        return data.x.reshape(len(data), -1)
"""
)


@pytest.mark.parametrize("first", family(["true", "false"]))
def test_a_probe_that_comes_or_goes_is_another_case_from_the_beginning(tmp_path: Path, first: str) -> None:
    metrics = {"true": "accuracy, linear_probe_accuracy", "false": "accuracy"}
    for probe in (first, "false" if first == "true" else "true"):
        exam = PROBED % (probe, metrics[probe])
        path = write_job(tmp_path / probe, testenv=exam, plugin=FEATURES, hyperparameters="", job="seeds: [0]")
        [found] = ianvs.run(path, workspace=tmp_path / "ws", engine="inline")
        assert found.status == "finished", found.failure
        assert not any(np.isnan(matrix.values).any() for matrix in found.matrices.values())
        assert len(found.matrices) == len(metrics[probe].split())


@pytest.mark.slow
def test_a_beginning_that_was_taken_over_in_part_is_not_continued(tmp_path: Path) -> None:
    """Of its rounds only the last one's model is there; a kill may leave the case without it."""
    run(tmp_path / "few", "[0, 90, 180]", tmp_path / "ws")
    run(tmp_path / "more", "[0, 90, 180, 270]", tmp_path / "ws")
    [whole] = run(tmp_path / "more", "[0, 90, 180, 270]", tmp_path / "other")
    case = tmp_path / "ws" / "cases" / whole.case.id
    unpack_cases(tmp_path / "ws")
    for gone in ("result.json", "scores", "rounds/2", "rounds/3", "rounds/4"):
        path = case / gone
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert not (case / "rounds" / "1" / "model").exists()
    [again] = run(tmp_path / "more", "[0, 90, 180, 270]", tmp_path / "ws")
    assert (again.matrices["accuracy"].values == whole.matrices["accuracy"].values).all()
