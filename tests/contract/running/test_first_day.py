"""What somebody meets on the first day: columns of their names, references that are explained, a save() that fails."""

import csv
from io import StringIO
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import IanvsError
from ianvs.cli import main
from ianvs.results.plots import write_plots
from ianvs.running.progress import PlainProgress
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import write_job

PLUGIN = """
import os
import numpy as np


class Mine:
    def __init__(self, lr=0.1):
        self.lr = lr

    def train(self, train_data, valid_data=None):
        self.answer = int(train_data.y[0])

    def predict(self, data):
        return np.full(len(data), getattr(self, "answer", 0))

    def save(self, path):
        np.save(path.with_suffix(".npy"), 1)
        return path.with_suffix(".npy")

    def load(self, path):
        self.answer = int(np.load(path))


class Other(Mine):
    def __init__(self, learning_rate=0.1):
        super().__init__(learning_rate)


class Careless(Mine):
    def save(self, path):
        with open(os.path.join("checkpoints", "model"), "w") as file:
            file.write("1")
"""


def job(folder: Path, name: str, hyperparameters: str, rank: str = "", metrics: str = "[accuracy]") -> Path:
    exam = f"dataset: {{name: digits}}\nscenario: {{name: CIL, rounds: 5}}\nmetrics: {metrics}"
    path = write_job(
        folder, testenv=exam, plugin=PLUGIN, name=name, hyperparameters=hyperparameters, job="engine: inline"
    )
    path.write_text(edited(path.read_text(), "    sort_by:", f"{rank}    sort_by:"))
    return path


def test_hyperparameters_of_two_names_are_one_column(tmp_path):
    path = job(tmp_path, "Mine", "- lr: {values: [0.1, 0.2]}", "    columns: {lr: learning_rate}\n")
    results = ianvs.run(path)
    with (tmp_path / "ws" / "test" / "rank" / "all_rank.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert sorted(row["Learning_rate"] for row in rows) == ["0.1", "0.2"]
    assert "Lr" not in rows[0]
    assert [result.case.hyperparameters for result in results] == [{"lr": 0.1}, {"lr": 0.2}]
    assert ianvs.load_results(tmp_path / "ws").leaderboard.rows == results.leaderboard.rows


def test_a_column_of_no_hyperparameter_is_refused(tmp_path):
    path = job(tmp_path, "Mine", "- lr: {values: [0.1]}", "    columns: {lrr: learning_rate}\n")
    [(code, place)] = errors_of(ianvs.validate, path)
    assert (code, place.split(":")[0]) == ("unknown-hyperparameter", f"{tmp_path}/benchmarkingjob.yaml")


def test_a_save_into_a_folder_that_is_not_there_fails_before_the_first_round(tmp_path):
    [result] = ianvs.run(job(tmp_path, "Careless", ""))
    assert result.failure is not None
    assert len(result.rounds) == 0
    printed(result.failure.message)
    warnings = [warning.message for warning in ianvs.validate(tmp_path / "benchmarkingjob.yaml").warnings]
    assert [message for message in warnings if "save()" in message] == [result.failure.message]


@pytest.mark.parametrize(("metrics", "told"), [("[accuracy]", False), ("[accuracy, IM]", True)])
def test_a_run_and_a_plan_say_which_cases_are_references(tmp_path, capsys, metrics, told):
    path = write_job(
        tmp_path,
        testenv=f"dataset: {{name: digits}}\nscenario: {{name: CIL, rounds: 5}}\nmetrics: {metrics}",
        hyperparameters="",
        job="engine: inline",
    )
    stream = StringIO()
    PlainProgress(stream).planned(ianvs.plan(path), 1)
    opening = stream.getvalue()
    assert ("joint reference" in opening and "IM" in opening) == told
    assert main(["plan", str(path)]) == 0
    assert ("; among them" in capsys.readouterr().out) == told


RECALLS = """
def recalls(y_true, y_pred):
    return {f"class {c}": float((y_pred[y_true == c] == c).mean()) for c in set(y_true.tolist())}
"""


def test_a_metric_that_gives_a_mapping_has_a_column_for_each_number(tmp_path):
    metrics = "[accuracy, {name: recalls, url: ./recalls.py}, per_class_accuracy, {name: BWT, of: recalls}]"
    path = job(tmp_path, "Mine", "- lr: {values: [0.1]}", metrics=metrics)
    (tmp_path / "recalls.py").write_text(RECALLS)
    results = ianvs.run(path)
    (line,) = csv.DictReader((results.workspace / results.name / "rank" / "all_rank.csv").open())
    assert "recalls" not in line and "per_class_accuracy" not in line
    recalls = [float(line[f"recalls[class {digit}]"]) for digit in range(10)]
    assert recalls == [float(line[f"per_class_accuracy[{digit}]"]) for digit in range(10)]
    assert sum(recalls) == 1  # it says one class of the last round for all
    with pytest.raises(IanvsError, match="'per_class_accuracy' is no score that is known after each round"):
        write_plots(results, tmp_path, over="rounds", metric="per_class_accuracy", formats=["svg"])
    with pytest.raises(IanvsError, match="List it under `metrics` in the testenv: `- name: memory_bytes`"):
        write_plots(results, tmp_path, over=None, metric="Memory_bytes", formats=["svg"])
    with pytest.raises(IanvsError, match="There is none; `--over rounds` draws"):
        write_plots(results, tmp_path, over="lr", metric=None, formats=["svg"])
    assert not line["BWT of recalls"]
    assert "BWT of recalls is blank: recalls yields several numbers, and `of` names another score" in line["Status"]


def test_sorting_by_a_score_for_each_class_says_what_to_write(tmp_path):
    path = job(tmp_path, "Mine", "- lr: {values: [0.1]}", metrics="[accuracy, per_class_accuracy]")
    path.write_text(path.read_text().replace("accuracy: descend", "per_class_accuracy: descend"))
    [(code, _)] = errors_of(ianvs.validate, path)
    assert code == "unknown-column"
    path.write_text(path.read_text().replace("per_class_accuracy: d", "'per_class_accuracy[3]': d"))
    ianvs.validate(path)


@pytest.mark.parametrize("title", ["lrate", "scale", "accuracy", "Learning rate"])
def test_a_column_title_that_may_be_a_slip_is_warned_of(tmp_path, title):
    hyperparameters = "- lr: {values: [0.1]}\n- scale: {values: [1]}\n- l_rate: {values: [1]}"
    path = job(tmp_path, "Scaled", hyperparameters, f"    columns: {{lr: {title}}}\n")
    scaled = "\n\nclass Scaled(Mine):\n    def __init__(self, lr, scale, l_rate):\n        super().__init__(lr)\n"
    (tmp_path / "plugin.py").write_text(PLUGIN + scaled)
    warnings = [warning for warning in ianvs.validate(path).warnings if warning.code == "doubtful-ranking"]
    assert len(warnings) == (title != "Learning rate")
    for warning in warnings:
        printed(warning.message)


@pytest.mark.parametrize("file", ["algorithm.yaml", "testenv.yaml"])
def test_a_key_in_the_wrong_file_is_told_with_its_file(tmp_path, file):
    path = job(tmp_path, "Mine", "- lr: {values: [0.1]}")
    kind = file.removesuffix(".yaml")
    text = (tmp_path / file).read_text()
    (tmp_path / file).write_text(text.replace(f"{kind}:\n", f"{kind}:\n  references: none\n", 1))
    [(code, _)] = errors_of(ianvs.validate, path)
    assert code in ("unknown-key", "invalid-option")


def test_columns_beside_a_misspelt_metric_hide_no_other_error(tmp_path):
    path = job(tmp_path, "Mine", "- lr: {values: [0.1]}", "    columns: {lr: rate}\n", metrics="[acuracy]")
    text = (tmp_path / "testenv.yaml").read_text()
    (tmp_path / "testenv.yaml").write_text(text.replace("CIL", "CILL"))
    assert sorted(code for code, _ in errors_of(ianvs.validate, path)) == ["unknown-metric", "unknown-scenario"]
