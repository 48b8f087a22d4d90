"""What a testenv asks for and its scenario can't give is told before anything is trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ianvs
from ianvs.base.errors import ConfigError
from tests.edits import edited
from tests.jobs import MAJORITY, write_job

GATE = "model_eval: {model_metric: {name: accuracy}, threshold: 0}"
NEVER = edited(MAJORITY, "        if round == self.fail_in_round:", "        raise SystemExit(9)\n        if round:")
SHARED = "{name: IIL, rounds: 3}"


def refused(folder: Path, scenario: str, metrics: str = "accuracy", more: str = "", paradigm: str = "") -> str:
    exam = f"dataset: {{name: digits}}\nscenario: {scenario}\nmetrics: [{metrics}]\n{more}"
    path = write_job(folder, plugin=NEVER, hyperparameters="", testenv=exam, job="engine: inline")
    if paradigm:
        algorithm = folder / "algorithm.yaml"
        algorithm.write_text(edited(algorithm.read_text(), "incrementallearning", paradigm))
    with pytest.raises(ConfigError) as caught:
        ianvs.run(path)
    return str(caught.value)


def test_a_stream_holds_nothing_out_that_could_decide_about_a_model(tmp_path):
    said = refused(tmp_path, "{name: online, rounds: 5}", more=GATE)
    assert "testenv.yaml:5:3: model_eval holds back a part of each round, and online brings a stream" in said


def test_hidden_labels_can_not_decide_about_a_model(tmp_path):
    said = refused(tmp_path, "{name: continual-pre-training, rounds: 5}", more=GATE)
    assert "continual-pre-training hides its labels" in said


def test_a_linear_probe_needs_a_test_set_for_each_round(tmp_path):
    said = refused(tmp_path, SHARED, more="linear_probe: true")
    assert "linear_probe needs a test set for each round, and this exam has 3 rounds and 1 test set." in said


def test_references_are_not_trained_where_nothing_can_be_compared(tmp_path):
    said = refused(tmp_path, SHARED, "accuracy, IM, FWT_survey")
    assert "IM compares with joint runs round by round, and this exam has 3 rounds and 1 test set" in said
    assert "FWT_survey compares with single_task runs" in said
    assert not list((tmp_path / "ws" / "cases").glob("*/case.json"))


def test_a_misfit_is_found_too_when_the_exam_is_there_already(tmp_path):
    exam = f"dataset: {{name: digits}}\nscenario: {SHARED}\nmetrics: [accuracy]"
    ianvs.run(write_job(tmp_path, hyperparameters="", testenv=exam, job="engine: inline"))
    assert "this exam has 3 rounds and 1 test set" in refused(tmp_path, SHARED, "accuracy, IM")


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        ("{name: DIL, rotation: [0, 90]}", "each transformed in a way of its own"),
        ("{name: CPT, rounds: 5}", "its labels are hidden"),
    ],
)
def test_a_single_task_is_refused_where_rounds_can_not_be_one(tmp_path, scenario, why):
    said = refused(tmp_path, scenario, paradigm="singletasklearning")
    assert "a paradigm that teaches all rounds as one can't take this exam" in said
    assert why in said


@pytest.mark.parametrize("score", ["per_class_accuracy", "AAA"])
def test_a_metric_over_a_matrix_needs_one_number_in_each_cell(tmp_path, score):
    said = refused(tmp_path, "{name: CIL, rounds: 5}", f"accuracy, {{name: BWT, of: {score}}}")
    assert f"'{score}' is not a score that BWT can be computed from" in said


def test_nothing_is_held_out_of_a_stream(tmp_path):
    exam = "dataset: {name: digits}\nscenario: {name: online, rounds: 5}\nmetrics: [accuracy]"
    path = write_job(tmp_path, hyperparameters="", testenv=exam, job="engine: inline\nseeds: [0]")
    setting = "\n  incremental_learning_data_setting: {train_ratio: 0.5}\n  modules:"
    algorithm = tmp_path / "algorithm.yaml"
    algorithm.write_text(edited(algorithm.read_text(), "\n  modules:", setting))
    [found] = ianvs.run(path)
    assert sum(round_.train_samples for round_ in found.rounds) == 1438


def test_a_score_of_labels_is_refused_for_conversations_before_anything_runs(tmp_path):
    said = [{"messages": [{"role": "user", "content": "Who won?"}, {"role": "assistant", "content": "The others."}]}]
    for part in ("train", "test"):
        (tmp_path / f"{part}.json").write_text(json.dumps(said * 4))
    exam = "dataset: {train_data: ./train.json, test_data: ./test.json}\nscenario: {name: IIL, rounds: 2}\n"
    with pytest.raises(ConfigError, match="does not score replies to conversations"):
        ianvs.run(write_job(tmp_path, testenv=f"{exam}metrics: [accuracy]", job="engine: inline"))
    probed = write_job(tmp_path, testenv=f"{exam}metrics: [ROUGE_L]\nlinear_probe: true", job="engine: inline",
                       sort_by="[{ROUGE_L: descend}]")  # fmt: skip
    with pytest.raises(ConfigError, match="linear_probe fits a classifier to classes"):
        ianvs.run(probed)
