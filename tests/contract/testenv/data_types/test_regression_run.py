"""Exams of numbers to be estimated: from an author's function or a file, in domains and as a stream, to errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import ConfigError
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Part
from ianvs.testenv.data_types.regression.regression_type import Regression
from tests.edits import edited
from tests.errors import errors_of, recorded
from tests.jobs import write_job

pytestmark = pytest.mark.usefixtures("functions_in_forks")

FUNCTION = """
import numpy as np

def samples():
    x = np.arange(24, dtype=np.float32)[:, None]
    y = x[:, 0] * 0.5
    y[12:] += 10
    domain = np.repeat(["low", "high"], 12)
    return {"train": (x[::2], y[::2], domain[::2]), "test": (x[1::2], y[1::2], domain[1::2])}
"""
PLUGIN = """
class Last:
    \"\"\"Answers with the mean of the last labels that it was told.\"\"\"

    def __init__(self):
        self.mean = 0.0

    def train(self, train_data):
        y = train_data.y
        assert y.dtype == "float32"
        self.mean = y.mean(axis=0)

    def predict(self, data):
        return [self.mean] * len(data)

    def save(self, path):
        path.write_text(repr(float(self.mean)))

    def load(self, path):
        self.mean = float(path.read_text())
"""
TESTENV = """
dataset: {url: ./mine.py, name: samples, data_type: regression}
scenario: {name: domain-incremental}
metrics: [{name: MAE}, {name: R2}, {name: BWT, of: MAE}, {name: FWT, of: MAE}, {name: BWT, of: R2}]
"""


@pytest.fixture(autouse=True)
def in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def job(
    folder: Path, testenv: str = TESTENV, plugin: str = PLUGIN, function: str = FUNCTION, score: str = "MAE"
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(function)
    return write_job(
        folder, plugin=plugin, name="Last", testenv=testenv, hyperparameters="", job="engine: inline",
        sort_by=f"[{{{score}: ascend}}]",
    )  # fmt: skip


def test_errors_in_domains_and_what_is_forgotten_in_their_direction(tmp_path: Path) -> None:
    [case] = ianvs.run(job(tmp_path))
    assert case.status == "finished", case.failure
    x = np.arange(24)
    y = x * 0.5 + 10 * (x >= 12)
    parts = np.split(y[1::2], 2)
    means = [0.0, *(part.mean() for part in np.split(y[::2], 2))]
    expected = np.array([[np.abs(part - mean).mean() for part in parts] for mean in means])
    np.testing.assert_allclose(case.matrices["MAE"].values, expected, rtol=0, atol=1e-12)
    assert case.metrics["MAE"] == pytest.approx(expected[2].mean())
    assert not case.matrices["MAE"].higher_is_better
    # Less than 0 is forgetting, of an error too: it has grown.
    assert case.metrics["BWT"] == pytest.approx(expected[1, 0] - expected[2, 0])
    assert expected[2, 0] > expected[1, 0]
    assert case.metrics["FWT"] == pytest.approx(expected[0, 1] - expected[1, 1])
    off = [[1 - np.mean((part - mean) ** 2) / np.var(part) for part in parts] for mean in means]
    np.testing.assert_allclose(case.matrices["R2"].values, off, rtol=0, atol=1e-12)
    assert case.metrics["BWT of R2"] == pytest.approx(off[2][0] - off[1][0])


def test_a_stream_of_numbers(tmp_path: Path) -> None:
    testenv = edited(TESTENV, "domain-incremental", "online, rounds: 2, batch: 3")
    testenv = testenv.partition("metrics:")[0] + "metrics: [{name: MSE}, {name: RMSE}]\n"
    [case] = ianvs.run(job(tmp_path, testenv, score="MSE"))
    assert case.status == "finished", case.failure
    mse, rmse = case.matrices["MSE"].values, case.matrices["RMSE"].values
    low, high = np.split(np.arange(1, 24, 2) * 0.5 + np.repeat([0, 10], 6), 2)
    np.testing.assert_allclose(mse[0], [np.mean(low**2), np.mean(high**2)])
    assert mse[1, 0] < mse[0, 0] and mse[2, 1] < mse[1, 1]
    np.testing.assert_allclose(rmse, np.sqrt(mse), rtol=1e-12)


@pytest.mark.parametrize("form", ["npz", "csv", "jsonl"])
def test_numbers_in_files_are_read_where_the_type_is_said(tmp_path: Path, form: str) -> None:
    x, y = np.arange(8.0), np.array([0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4.25])
    if form == "npz":
        np.savez(tmp_path / "all.npz", x=x[:, None], y=y)
    elif form == "csv":
        (tmp_path / "all.csv").write_text("a,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True)))
    else:
        lines = [f'{{"a": {a}, "y": {b}}}\n' for a, b in zip(x, y, strict=True)]
        (tmp_path / "all.jsonl").write_text("".join(lines))
    testenv = f"""
    dataset: {{train_data: ./all.{form}, test_data: ./all.{form}, data_type: regression}}
    scenario: {{name: instance-incremental, rounds: 1}}
    metrics: [{{name: MAE}}]
    """
    [case] = ianvs.run(job(tmp_path, testenv))
    assert case.status == "finished", case.failure
    np.testing.assert_allclose(case.matrices["MAE"].values[:, 0], [y.mean(), np.abs(y - y.mean()).mean()])


def test_a_cell_that_is_no_number_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text("a,y\n1,2.5\n2,much\n3,nan\n")
    testenv = """
    dataset: {train_data: ./all.csv, test_data: ./all.csv, data_type: regression}
    scenario: {name: instance-incremental, rounds: 1}
    metrics: [{name: MAE}]
    """
    for command in (ianvs.validate, ianvs.run):
        assert errors_of(command, job(tmp_path, testenv)) == [("invalid-record", "all.csv:3:1")]


LABEL_SLIPS = {
    "nan": ("y[12:] += 10", "y[2] = np.nan", "invalid-record"),
    "classes": ('"test": (x[1::2]', '"classes": ["a"], "test": (x[1::2]', "invalid-record"),
}


@pytest.mark.parametrize(("old", "new", "code"), LABEL_SLIPS.values(), ids=LABEL_SLIPS)
def test_wrong_labels_are_refused_before_anything_runs(tmp_path: Path, old: str, new: str, code: str) -> None:
    path = job(tmp_path, function=edited(FUNCTION, old, new))
    for command in (ianvs.validate, ianvs.run):
        assert errors_of(command, path) == [(code, "mine.py:4:1")]


def test_numbers_are_no_classes_unless_the_type_is_said(tmp_path: Path) -> None:
    path = job(tmp_path, edited(TESTENV, ", data_type: regression", ""))
    with pytest.raises(ConfigError) as caught:
        ianvs.validate(path)
    assert recorded(caught.value.problems) == [("invalid-array", "mine.py:4:1")]
    assert "`data_type: regression`" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["accuracy", "exact_match", "mIoU", "mAP"])
def test_scores_of_classes_are_refused_by_a_message_that_names_others(tmp_path: Path, name: str) -> None:
    path = job(tmp_path, edited(TESTENV, "metrics: [", f"metrics: [{{name: {name}}}, "))
    for command in (ianvs.validate, ianvs.run):
        with pytest.raises(ConfigError) as caught:
            command(path)
        assert recorded(caught.value.problems) == [("unfit-metric", "testenv.yaml:4:20")]
        for other in ("MSE", "RMSE", "MAE", "R2"):
            assert other in str(caught.value)


def test_classes_can_not_arrive_over_time(tmp_path: Path) -> None:
    path = job(tmp_path, edited(TESTENV, "domain-incremental", "class-incremental, rounds: 2"))
    assert errors_of(ianvs.run, path) == [("invalid-scenario", "testenv.yaml:3:20")]


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ([1, 2.5], [1, 2.5]),
        (["1", " 2.5"], [1, 2.5]),
        (np.array([[1], [2]]), [1, 2]),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        (np.array([[1, 2], [3, 4]], dtype=object), [[1, 2], [3, 4]]),
    ],
)
def test_each_form_of_numbers_is_read(given: Any, held: Any) -> None:
    labels, names = Regression().read(given, None)
    assert (labels.dtype, labels.tolist(), names) == (np.float64, held, ())


LABELS = {
    "a word": [1, "x"],
    "ragged": [[1, 2], [3]],
    "infinite": [[1, 2], [3, np.inf]],
    "three axes": np.zeros((2, 2, 2)),
    "none": [1, None],
}


@pytest.mark.parametrize("given", LABELS.values(), ids=LABELS)
def test_other_labels_are_refused_with_sample_and_remedy(given: Any) -> None:
    assert errors_of(Regression().read, given, None) == [("invalid-record", "")]


ANSWERS = {
    "three numbers": [[1, 2, 3]] * 2,
    "one sample": [[1, 2]],
    "nan": [[1, 2], [3, np.nan]],
    "words": [["a", "b"]] * 2,
}


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_wrong_answers_are_refused(answers: Any) -> None:
    asked = Part(Samples(np.zeros((2, 1)), np.zeros((2, 2)), np.empty(0, str)), np.arange(2))
    check = Regression().checker(asked, 0)
    assert errors_of(check, answers, "P.predict()") == [("invalid-result", "")]
