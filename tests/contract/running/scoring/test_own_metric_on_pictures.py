"""An author's metric on label pictures: what it is given, when that is stored, and what is told where it is not."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.exam.metrics.label_pictures import EVERY
from ianvs.store import CaseStore
from ianvs.testenv.data_types.segmentation import Segmentation
from tests.contract.running.scoring.test_label_pictures_scored import AS_ARRAYS, TESTENV, write_scenes
from tests.errors import located
from tests.jobs import write_job

MINE = """
import numpy as np

def mine(y_true, y_pred):
    t, p = np.asarray(y_true), np.asarray(y_pred)
    assert t.shape == p.shape == (len(y_true), 6, 5) and t.dtype == p.dtype == np.uint8
    assert all((y_true[i] == t[i]).all() and (one == p[i]).all() for i, one in enumerate(y_pred))
    p, t = p[t != 255], t[t != 255]
    both = [((t == c) & (p == c)).sum() / ((t == c) | (p == c)).sum() for c in range(255) if c in t or c in p]
    return np.mean(both)

def counted(confusion):
    assert confusion.shape == (7, 8)
    return confusion[:, :-1].trace() / confusion.sum()
"""
OWN = ("mIoU, {name: mine, url: ./mine.py}", "mIoU, pixel_accuracy, {name: counted, url: ./mine.py}")


def job_of(folder, metrics, more="", **changes):
    settings = {"name": "DomainMajority", "hyperparameters": "", "job": "seeds: [0]", "sort_by": "[{mIoU: descend}]"}
    testenv = TESTENV.format(train=folder / "train.txt", test=folder / "test.txt")
    testenv = re.sub(r"metrics: \[.*\]", f"metrics: [{metrics}]", testenv) + more
    (folder / "job").mkdir(exist_ok=True)
    (folder / "job" / "mine.py").write_text(MINE)
    return write_job(folder / "job", plugin=AS_ARRAYS, testenv=testenv, **{**settings, **changes})


def stored_names(case):
    return CaseStore(case.directory.parents[1]).extras(case.case.id, 3)


def test_it_gets_all_label_pictures_and_agrees_with_the_built_in_score(tmp_path):
    write_scenes(tmp_path)
    (case,) = ianvs.run(job_of(tmp_path, OWN[0]), engine="inline")
    assert case.status == "finished", case.failure
    np.testing.assert_allclose(case.matrices["mine"].values, case.matrices["mIoU"].values, atol=1e-12)
    assert EVERY in stored_names(case)


def test_one_that_takes_the_confusion_matrix_gets_the_counts(tmp_path):
    write_scenes(tmp_path)
    (case,) = ianvs.run(job_of(tmp_path, OWN[1]), engine="inline")
    assert case.status == "finished", case.failure
    np.testing.assert_array_equal(case.matrices["counted"].values, case.matrices["pixel_accuracy"].values)


@pytest.mark.slow
def test_added_to_a_finished_job_it_is_computed_and_nothing_runs_again(tmp_path):
    write_scenes(tmp_path)
    (before,) = ianvs.run(job_of(tmp_path, "mIoU"), engine="inline")
    (after,) = ianvs.run(job_of(tmp_path, OWN[0]), engine="inline")
    assert after.rounds == before.rounds
    assert after.metrics["mine"] == pytest.approx(before.metrics["mIoU"], abs=1e-12)


def keep_counts_alone(monkeypatch):
    """As versions did that stored predicted label pictures only where a metric read them."""
    kept = Segmentation.stored_predictions

    def without(*given):
        said = kept(*given)
        return replace(said, extras={name: value for name, value in said.extras.items() if name != EVERY})

    monkeypatch.setattr(Segmentation, "stored_predictions", without)


@pytest.mark.slow
def test_of_a_job_of_before_pictures_were_stored_it_says_which_cases_have_to_run_again(tmp_path, monkeypatch):
    write_scenes(tmp_path)
    with monkeypatch.context() as before_that:
        keep_counts_alone(before_that)
        (before,) = ianvs.run(job_of(tmp_path, "mIoU"), engine="inline")
    assert EVERY not in stored_names(before)
    (read,) = ianvs.run(job_of(tmp_path, "mIoU, pixel_accuracy"), engine="inline")
    assert read.metrics["mIoU"] == before.metrics["mIoU"]
    job = job_of(tmp_path, OWN[0])
    for ask in (ianvs.run, ianvs.api.report):
        with pytest.raises(ConfigError, match=before.case.id[:8]) as caught:
            ask(job)
        assert [code for code, _ in located(caught.value.problems)] == ["missing-predictions"]
    (after,) = ianvs.run(job, engine="inline", rerun="all")
    assert after.metrics["mine"] == pytest.approx(before.metrics["mIoU"], abs=1e-12)
    (counted,) = ianvs.run(job_of(tmp_path, OWN[1]), engine="inline")  # of which enough is stored
    assert counted.metrics["counted"] == counted.metrics["pixel_accuracy"]


GATE = """
model_eval:
  model_metric: {{name: mine, url: ./mine.py}}
  threshold: {threshold}
  operator: ">="
  mode: {mode}
"""
JUDGED = [
    ("relative", -1.0, "3 of 3"),
    ("relative", 1.0, "0 of 3"),
    ("absolute", 0.0, "3 of 3"),
    ("absolute", 1.0, "0 of 3"),
]


@pytest.mark.parametrize(("mode", "threshold", "adopted"), JUDGED)
def test_it_may_be_the_gates_and_the_leaderboard_says_what_was_adopted(tmp_path, mode, threshold, adopted):
    write_scenes(tmp_path)
    results = ianvs.run(job_of(tmp_path, "mIoU", GATE.format(mode=mode, threshold=threshold)), engine="inline")
    (case,) = results
    assert case.status == "finished", case.failure
    assert results.leaderboard_frame["Adopted"].tolist() == [adopted]
    for round_ in case.rounds[1:]:
        before, after = round_.gate_scores
        assert round_.adopted == ((after - before if mode == "relative" else after) >= threshold)


def test_without_a_gate_there_is_no_column_of_it(tmp_path):
    write_scenes(tmp_path)
    assert "Adopted" not in ianvs.run(job_of(tmp_path, "mIoU"), engine="inline").leaderboard_frame
