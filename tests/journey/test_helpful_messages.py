"""Messages that used to leave somebody alone."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.errors import ConfigError
from tests.edits import edited
from tests.errors import errors_of, located, printed
from tests.jobs import TESTENV, write_job

BAD_METRIC = """
def mine(y_true, y_pred):
    nothing = len(y_true) - len(y_pred)
    return 1 / nothing
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_metric_that_fails_is_told_with_its_file_and_line(tmp_path: Path) -> None:
    assert "{name: BWT}" in TESTENV
    job = write_job(tmp_path, testenv=edited(TESTENV, "{name: BWT}", "{name: mine, url: ./mine.py}"))
    (tmp_path / "mine.py").write_text(BAD_METRIC)
    with pytest.raises(ConfigError, match=r"mine\.py:4: ZeroDivisionError: ") as caught:
        ianvs.validate(job)
    assert located(caught.value.problems) == [("failed-plugin", "testenv.yaml:4:38")]


@pytest.mark.parametrize("text", ["device: gpu", "device: 'cuda:0'"])
def test_a_graphics_card_is_called_cuda(tmp_path: Path, text: str) -> None:
    assert [code for code, _ in errors_of(ianvs.validate, write_job(tmp_path, job=text))] == ["invalid-choice"]
    assert [code for code, _ in errors_of(ianvs.validate, write_job(tmp_path), device="gpu")] == ["invalid-choice"]


def test_results_say_in_a_few_lines_what_they_are(tmp_path: Path) -> None:
    results = ianvs.run(write_job(tmp_path, job="seeds: [0]\nengine: inline"))
    lines = str(results).splitlines()
    printed(lines[0])
    assert re.match(r" *1\. majority: accuracy 0\.", lines[1])
    assert len(lines) == 4
    assert repr(results) == str(results)


@pytest.mark.parametrize(
    ("said", "file", "column"),
    [
        ("", "birds/train.npz", "birds"),
        ("", "birds/sparrows.npz", "sparrows"),
        (", title: my birds", "x/train.npz", "my birds"),
    ],
)
def test_data_in_files_have_a_name_that_says_something(tmp_path: Path, said: str, file: str, column: str) -> None:
    x, y = np.arange(40, dtype=np.float32).reshape(20, 2), np.arange(20) % 2
    (tmp_path / file).parent.mkdir()
    np.savez(tmp_path / file, x=x, y=y)
    np.savez(tmp_path / "test.npz", x=x + 0.5, y=y)
    dataset = f"{{train_data: {file}, test_data: test.npz{said}}}"
    testenv = f"dataset: {dataset}\nincremental_rounds: 2\nmetrics: [accuracy]\n"
    job = write_job(tmp_path, testenv=testenv, hyperparameters="", job="seeds: [0]\nengine: inline")
    assert set(ianvs.run(job).leaderboard_frame["Dataset"]) == {column}


def test_a_title_that_is_given_later_is_shown_for_what_has_run(tmp_path: Path) -> None:
    job = write_job(tmp_path, hyperparameters="", job="seeds: [0]\nengine: inline")
    ianvs.run(job)
    again = ianvs.run(job, settings={"dataset.title": "mine"})
    assert again.ran == 0
    assert set(again.leaderboard_frame["Dataset"]) == {"mine"}
