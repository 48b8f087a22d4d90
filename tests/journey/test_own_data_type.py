"""examples/own_data_type: a data type and a question of an author's, without a change of core."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import ianvs
from tests.errors import errors_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_data_type"


def copied(folder: Path) -> Path:
    shutil.copytree(EXAMPLE, folder / "own", ignore=shutil.ignore_patterns("workspace", "__pycache__"))
    return folder / "own" / "benchmarkingjob.yaml"


@pytest.mark.slow
def test_points_are_taught_class_by_class_and_scored_under_each_class_list(tmp_path: Path) -> None:
    results = ianvs.run(copied(tmp_path))
    of = {case.case.hyperparameters["keep"]: case.matrices["found_points"] for case in results}
    np.testing.assert_allclose(of[True].R[-1], 1.0)  # colours are far apart, so who keeps them finds every point
    assert np.triu(of[True].R, 1).max() == 0  # points of classes to come can't be answered
    np.testing.assert_allclose(of[False].R, np.eye(3))
    counts = [case.matrices["count_error"].values[-1] for case in results]
    np.testing.assert_allclose(counts, 0.0)  # what the question asks is of all classes


def test_a_label_that_is_none_is_refused_with_its_sample(tmp_path: Path) -> None:
    job = copied(tmp_path)
    data = job.parent / "spots.py"
    data.write_text(data.read_text().replace("labels.tolist()}", "(labels + 9).tolist()}"))
    assert errors_of(ianvs.run, job, engine="inline") == [("invalid-result", f"{tmp_path}/own/spots.py:8:1")]


def test_a_type_that_is_not_there_is_told_once_where_it_is_named(tmp_path: Path) -> None:
    job = copied(tmp_path)
    testenv = job.parent / "testenv.yaml"
    testenv.write_text(testenv.read_text().replace("name: Points", "name: Pointz"))
    assert errors_of(ianvs.run, job, engine="inline") == [
        ("unloadable-plugin", f"{tmp_path}/own/testenv.yaml:6:13"),
    ]


@pytest.mark.slow
def test_a_learner_without_the_method_that_is_asked_is_refused(tmp_path: Path) -> None:
    job = copied(tmp_path)
    plugin = job.parent / "spotter.py"
    plugin.write_text(plugin.read_text().replace("def count", "def recount"))
    assert errors_of(ianvs.run, job, engine="inline") == [("broken-contract", f"{tmp_path}/own/algorithm.yaml:5:13")]
    testenv = job.parent / "testenv.yaml"
    head, _, tail = testenv.read_text().partition("  evaluation_tasks:")
    testenv.write_text(head + tail[tail.index("  metrics:") :])
    assert errors_of(ianvs.run, job, engine="inline") == [("unrequested-scores", f"{tmp_path}/own/testenv.yaml:14:13")]
