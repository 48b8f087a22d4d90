"""Questions and answers, a text each: from a table to a score."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.base.types import Predictions
from ianvs.exam.data.dataset import Samples
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import LONGEST_ANSWER, data_type
from ianvs.exam.metrics.metric import EvaluationRecord
from tests.edits import edited
from tests.errors import errors_of
from tests.jobs import write_job
from tests.marks import slow

TESTENV = """
dataset: {train_data: ./texts.jsonl, test_data: ./texts.jsonl}
scenario: {name: domain-incremental}
metrics: [{name: exact_match}]
"""
PARROT = """
import numpy as np

class Parrot:
    def __init__(self, known=1):
        self.known, self.answers = known, {}

    def train(self, train_data):
        assert all(isinstance(text, str) for text in train_data.x)
        self.answers |= dict(list(zip(train_data.x, train_data.y))[: self.known])

    def predict(self, data):
        return [self.answers.get(question, "don't know") for question in data]

    def save(self, path):
        path.write_text(repr(self.answers))

    def load(self, path):
        self.answers = eval(path.read_text())
"""


@pytest.mark.parametrize("engine", ["inline", slow("local")])
@pytest.mark.parametrize("form", ["list", "objects", "numbers"])
def test_a_learner_of_texts_is_scored(tmp_path: Path, engine: str, form: str) -> None:
    answers = (12, 7, 9, 3) if form == "numbers" else ("in the house", "nobody", "ça va, Ünal\n", "猫")
    records = [
        {"question": f"{domain} {n}?", "answer": answer, "domain": domain}
        for domain in ("one", "two")
        for n, answer in enumerate(answers)
    ]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    plugin = PARROT
    if form == "objects":
        plugin = edited(PARROT, "return [", "return np.array([", "in data]", "in data], dtype=object)")
    grid = "- known: {values: [1, 4]}"
    job = write_job(
        tmp_path, plugin=plugin, name="Parrot", testenv=TESTENV, hyperparameters=grid, job=f"engine: {engine}",
        sort_by="[{exact_match: descend}]",
    )  # fmt: skip
    few, all_ = ianvs.run(job)
    assert (few.status, all_.status) == ("finished", "finished")
    assert few.matrices["exact_match"].values.tolist() == [[0, 0], [0.25, 0], [0.25, 0.25]]
    assert all_.matrices["exact_match"].values.tolist() == [[0, 0], [1, 0], [1, 1]]


def test_one_long_answer_makes_the_others_no_longer() -> None:
    count, kind = 10_000, data_type("text")
    truth = np.array([f"answer {n}" for n in range(count)], dtype=object)
    part = Part(Samples(np.zeros(count), truth, np.empty(0, str)), np.arange(count))
    tracemalloc.start()
    answers, cut = kind.shortened(kind.checker(part, 0)([*truth[:-1], "é" * (LONGEST_ANSWER + 1)], "P.predict()"))
    stored = kind.stored_predictions([(part, answers)], 0)
    seen = kind.record(EvaluationRecord(()), kind.truth(part.samples, part.positions), stored)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cut == 1
    assert peak < 2e7  # bytes; 10 000 texts as long as the longest take 4e9
    assert stored.labels.nbytes < 1e5
    assert seen.y_pred is not None
    assert seen.y_pred[:-1].tolist() == truth[:-1].tolist()
    assert seen.y_pred[-1] == "é" * LONGEST_ANSWER


def test_texts_that_an_earlier_version_has_stored_are_read() -> None:
    kind, texts = data_type("text"), np.array(["in the house", "", "ça va\n"])
    part = Part(Samples(texts, texts.astype(object), np.empty(0, str)), np.arange(3))
    about, now = EvaluationRecord(()), kind.stored_predictions([(part, kind.checker(part, 0)(texts, "P.predict()"))], 0)
    before = kind.record(about, texts, Predictions(texts))
    after = kind.record(about, kind.truth(part.samples, part.positions), now)
    for one, other in ((before.y_true, after.y_true), (before.y_pred, after.y_pred)):
        assert np.asarray(one).tolist() == np.asarray(other).tolist() == texts.tolist()


def test_a_metric_that_is_added_to_a_finished_exam_is_tried_first(tmp_path: Path) -> None:
    """An exam that an earlier run has prepared knows nothing of the metrics that come later."""
    record = {"question": "who?", "answer": "nobody", "domain": "one"}
    (tmp_path / "texts.jsonl").write_text(json.dumps(record) + "\n")
    told = {"plugin": PARROT, "name": "Parrot", "hyperparameters": "", "job": "engine: inline"}
    one = write_job(tmp_path, testenv=TESTENV, sort_by="[{exact_match: descend}]", **told)
    assert [case.status for case in ianvs.run(one)] == ["finished"]
    other = write_job(tmp_path, testenv=edited(TESTENV, "exact_match", "accuracy"), **told)
    for command in (ianvs.validate, ianvs.run):
        assert errors_of(command, other) == [("unfit-metric", f"{tmp_path}/testenv.yaml:4:20")]
    ianvs.validate(write_job(tmp_path, testenv=TESTENV, sort_by="[{exact_match: descend}]", **told))
