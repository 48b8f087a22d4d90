"""What a testenv asks for and its scenario can't give is told before anything is trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ianvs
from tests.edits import edited
from tests.errors import Found, errors_of
from tests.jobs import MAJORITY, write_job

GATE = "model_eval: {model_metric: {name: accuracy}, threshold: 0}"
FEATURES = "    def features(self, data):\n        return data.x.reshape(len(data), -1)\n\n    def save"
ASKED = edited(MAJORITY, "    def save", FEATURES)
NEVER = edited(ASKED, "        if round == self.fail_in_round:", "        raise SystemExit(9)\n        if round:")
SHARED = "{name: IIL, rounds: 3}"


def refused(folder: Path, scenario: str, metrics: str = "accuracy", more: str = "", paradigm: str = "") -> list[Found]:
    exam = f"dataset: {{name: digits}}\nscenario: {scenario}\nmetrics: [{metrics}]\n{more}"
    path = write_job(folder, plugin=NEVER, hyperparameters="", testenv=exam, job="engine: inline")
    if paradigm:
        algorithm = folder / "algorithm.yaml"
        algorithm.write_text(edited(algorithm.read_text(), "incrementallearning", paradigm))
    return [(code, location.rpartition("/")[2]) for code, location in errors_of(ianvs.run, path)]


FIVE = "{name: CIL, rounds: 5}"
NO_LABELS = "{name: continual-pre-training, rounds: 5}"
MISFITS = [  # (scenario, what else is asked for, code and location of what is told)
    (
        "{name: online, rounds: 5}",
        {"more": GATE},
        [("unfit-exam", "testenv.yaml:5:3")],
    ),
    (NO_LABELS, {"more": GATE}, [("unfit-exam", "testenv.yaml:5:3")]),
    (
        SHARED,
        {"more": "linear_probe: true"},
        [("unfit-exam", "testenv.yaml:5:17")],
    ),
    (
        SHARED,
        {"metrics": "accuracy, IM, FWT_survey"},
        [("unfit-exam", "testenv.yaml:4:23"), ("unfit-exam", "testenv.yaml:4:27")],
    ),
    (
        "{name: DIL, rotation: [0, 90]}",
        {"paradigm": "singletasklearning"},
        [("invalid-scenario", "testenv.yaml:3:20")],
    ),
    ("{name: CPT, rounds: 5}", {"paradigm": "singletasklearning"}, [("invalid-scenario", "testenv.yaml:3:20")]),
    (FIVE, {"metrics": "accuracy, {name: BWT, of: per_class_accuracy}"}, [("unfit-metric", "testenv.yaml:4:30")]),
    (FIVE, {"metrics": "accuracy, {name: BWT, of: AAA}"}, [("unfit-metric", "testenv.yaml:4:30")]),
]


@pytest.mark.parametrize(("scenario", "asked", "told"), MISFITS)
def test_a_misfit_is_told_before_anything_is_trained(tmp_path, scenario, asked, told):
    assert refused(tmp_path, scenario, **asked) == told
    assert not list((tmp_path / "ws" / "cases").glob("*/case.json"))


def test_a_misfit_is_found_too_when_the_exam_is_there_already(tmp_path):
    exam = f"dataset: {{name: digits}}\nscenario: {SHARED}\nmetrics: [accuracy]"
    ianvs.run(write_job(tmp_path, hyperparameters="", testenv=exam, job="engine: inline"))
    assert refused(tmp_path, SHARED, "accuracy, IM") == [("unfit-exam", "testenv.yaml:4:23")]


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
    assert errors_of(ianvs.run, write_job(tmp_path, testenv=f"{exam}metrics: [accuracy]", job="engine: inline")) == [
        ("unfit-metric", f"{tmp_path}/testenv.yaml:4:13")
    ]
    exam = f"{exam}metrics: [ROUGE_L]\nlinear_probe: true"
    job = "engine: inline"
    probed = write_job(tmp_path, plugin=ASKED, testenv=exam, job=job, sort_by="[{ROUGE_L: descend}]")
    assert errors_of(ianvs.run, probed) == [("unfit-exam", f"{tmp_path}/testenv.yaml:5:17")]
