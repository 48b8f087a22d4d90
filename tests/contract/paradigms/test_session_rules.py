"""What a session lets a paradigm do, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

import ianvs
from ianvs.base.types import CaseResult, PredictionKey
from ianvs.store import CaseStore
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import write_job

HEAD = """
import numpy as np
from ianvs.exam.paradigms import Measure, Paradigm, Predictions


class Mine(Paradigm):
    name = "mine"
    measures = {"highest": Measure("The highest.", reduce="max"), "last": Measure("The last.", reduce="last")}

"""
PLAIN = """
    def train(self, step, session):
        model = session.module("basemodel")
        for data in session.feed(step):
            session.call(model, "train", data)
"""
RULES = {"CIL": "{name: CIL, rounds: 5}", "OCL": "{name: online, rounds: 5, batch: 64}"}


def run(folder: Path, body: str, scenario: str = "CIL", **changes: str) -> CaseResult:
    testenv = f"dataset: {{name: digits}}\nscenario: {RULES[scenario]}\nmetrics: [accuracy]"
    path = write_job(
        folder, testenv=testenv, hyperparameters="", job="seeds: [0]\nengine: inline\nretries: 0", **changes
    )
    (folder / "mine.py").write_text(HEAD + body)
    file = folder / "algorithm.yaml"
    file.write_text(edited(file.read_text(), "incrementallearning", "{name: Mine, url: ./mine.py}"))
    [found] = ianvs.run(path)
    return found


def failed(found: CaseResult) -> str:
    """The class of the error that ended the case; its message is compared with the snapshot."""
    assert found.failure is not None
    printed(found.failure.message)
    return found.failure.error


def test_a_paradigm_that_does_as_incremental_learning_has_its_scores(tmp_path: Path) -> None:
    for scenario in RULES:
        mine = run(tmp_path / scenario, PLAIN, scenario)
        path = write_job(
            tmp_path / f"{scenario}-plain",
            testenv=f"dataset: {{name: digits}}\nscenario: {RULES[scenario]}\nmetrics: [accuracy]",
            hyperparameters="",
            job="seeds: [0]\nengine: inline",
        )
        [plain] = ianvs.run(path)
        assert mine.status == "finished", mine.failure
        assert (mine.matrices["accuracy"].values == plain.matrices["accuracy"].values).all()


def test_a_class_with_train_alone_is_a_paradigm(tmp_path: Path) -> None:
    path = write_job(tmp_path, hyperparameters="", job="seeds: [0]\nengine: inline")
    (tmp_path / "mine.py").write_text("class Mine:" + PLAIN + "\n\nclass Empty:\n    pass\n")
    file = tmp_path / "algorithm.yaml"
    text = file.read_text()
    file.write_text(edited(text, "incrementallearning", "{name: Mine, url: ./mine.py}"))
    [found] = ianvs.run(path)
    assert found.status == "finished", found.failure
    file.write_text(edited(text, "incrementallearning", "{name: Empty, url: ./mine.py}"))
    assert errors_of(ianvs.run, path) == [("invalid-option", f"{tmp_path}/algorithm.yaml:2:25")]


def test_a_round_that_has_not_come_is_out_of_reach(tmp_path: Path) -> None:
    assert failed(run(tmp_path, edited(PLAIN, "feed(step)", "feed(step, step + 1)"))) == "ExamRuleError"


def test_passes_over_a_stream_are_counted_whoever_asks_for_it_again(tmp_path: Path) -> None:
    twice = PLAIN + "        for data in session.feed(step):\n            session.call(model, 'train', data)\n"
    assert run(tmp_path / "rounds", twice).status == "finished"
    assert failed(run(tmp_path / "online", twice, "OCL")) == "ExamRuleError"
    shares = edited(PLAIN, "session.feed(step)", "(d for k in range(3) for d in session.feed(step, share=(k, 3)))")
    assert run(tmp_path / "shares", shares, "OCL").status == "finished"


def test_who_asks_for_earlier_rounds_is_a_bound(tmp_path: Path) -> None:
    found = run(tmp_path, edited(PLAIN, "feed(step)", "feed(1, step)"))
    assert (found.status, found.bound) == ("finished", True)
    assert [round_.train_samples for round_ in found.rounds[1:]] == sorted(r.train_samples for r in found.rounds[1:])
    assert not run(tmp_path / "plain", PLAIN).bound


def test_measures_are_put_together_as_they_say(tmp_path: Path) -> None:
    body = PLAIN + "        for value in (3, step, 1):\n"
    body += "            session.measure('highest', value)\n            session.measure('last', value)\n"
    found = run(tmp_path, body)
    assert [round_.measures for round_ in found.rounds[4:]] == [
        {"highest": 4.0, "last": 1.0},
        {"highest": 5.0, "last": 1.0},
    ]
    for value in ("'hihgest', 1", "'last', np.nan"):
        body = f"{PLAIN}        session.measure({value})\n"
        assert failed(run(tmp_path / value[1:5], body)) == "PluginError"


PREDICT = """
    def predict(self, data, context, session):
        said = session.call(session.module("basemodel"), "predict", data, **context)
        return Predictions(said, {"sure": EXTRA})
"""


def test_extras_are_stored_beside_the_labels(tmp_path: Path) -> None:
    found = run(tmp_path, PLAIN + edited(PREDICT, "EXTRA", "data.x.reshape(len(data), -1).sum(axis=1)"))
    stored = CaseStore(tmp_path / "ws").predictions(found.case.id, 5)[PredictionKey(2)]
    [exam] = ianvs.api.exams(tmp_path / "benchmarkingjob.yaml").values()
    samples = exam.dataset.test.x[exam.tests[2].test]
    assert stored.extras["sure"].tolist() == samples.reshape(len(samples), -1).sum(axis=1).tolist()
    assert stored.extras.keys() == {"sure"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("EXTRA", "[1]"),
        ('"sure": EXTRA', '"probe": np.arange(len(data))'),
        ('Predictions(said, {"sure": EXTRA})', "said"),
        ('Predictions(said, {"sure": EXTRA})', "Predictions(said[1:])"),
        ('session.module("basemodel")', 'session.module("edgemodel")'),
    ],
)
def test_answers_that_don_t_fit_are_refused(tmp_path: Path, old: str, new: str) -> None:
    found = run(tmp_path, PLAIN + edited(PREDICT, old, new))
    assert failed(found) == "PluginError"
