"""Learners that try to know the labels of a stream before they have answered."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

import numpy as np

import ianvs
from ianvs.config.spec import PrequentialSpec
from ianvs.exam.data.dataset import Dataset, Samples
from ianvs.exam.data_types import DataType, data_type
from ianvs.exam.scenarios.exam import Exam, Round, Rules, Stream, TestSet
from ianvs.running.session.feed import DataFeed
from ianvs.running.session.prequential_server import PrequentialServer
from ianvs.running.session.stream_journal import Journal
from tests.edits import edited
from tests.errors import errors_of, printed
from tests.jobs import write_job

TWICE = '''
class Twice:
    def __init__(self):
        self.seen = 0

    def train(self, train_data):
        self.seen += 1

    def predict(self, data):
        return [0] * len(data)

    def save(self, path):
        path.write_text("")

    def load(self, path):
        pass


from ianvs.exam.paradigms import Paradigm


class Ahead:
    """Begins a second stream to learn from before it answers the first."""

    def train(self, step, session):
        first = session.feed(step)
        for data in first:
            for more in session.feed(step):
                session.call(session.module("basemodel"), "train", more)
'''


def sat(folder: Path, plugin: str, name: str, paradigm: str, more: str = "") -> ianvs.Results:
    exam = "dataset: {name: digits}\nscenario: {name: online, rounds: 5, batch: 37}\n"
    exam += "metrics: [online_accuracy, accuracy]\nprequential: true"
    path = write_job(
        folder, engine="local", plugin=plugin, name=name, hyperparameters="", testenv=exam, job="seeds: [0]"
    )
    file = folder / "algorithm.yaml"
    file.write_text(file.read_text().replace("paradigm_type: incrementallearning", f"paradigm_type: {paradigm}"))
    return ianvs.run(path)


def test_a_second_stream_beside_the_first_is_refused(tmp_path):
    [found] = sat(tmp_path, TWICE, "Twice", "{name: Ahead, url: ./plugin.py}")
    assert found.status == "failed" and found.failure is not None
    assert found.failure.error == "ExamRuleError"
    printed(found.failure.message)


def test_an_answer_within_the_stream_that_is_no_class_ends_the_case(tmp_path):
    """The answer to the first chunk, after those before training."""
    once = "        self.asked = getattr(self, 'asked', 0) + 1\n        return [10 * (self.asked == 2)] * len(data)"
    [case] = sat(tmp_path, edited(TWICE, "        return [0] * len(data)", once), "Twice", "incrementallearning")
    assert case.failure is not None and case.failure.error == "PluginError"
    assert "class index 10" in case.failure.message


class Asked:
    """A keeper without any process, asked by hand."""

    def __init__(self, folder: Path, hears: bool = False, kind: DataType | None = None, **spec) -> None:
        y = np.arange(12) % 3
        samples = Samples(np.arange(12, dtype=np.float32)[:, None], y, np.array([str(i) for i in range(12)]))
        rules = Rules("online", False, False, "seen", boundaries=False)
        rounds = tuple(Round(str(k), np.arange(6 * k, 6 * k + 6), (0, 1, 2)) for k in range(2))
        dataset = Dataset("d", "classification", samples, samples, ("a", "b", "c"), "")
        exam = Exam(dataset, rounds, (TestSet("t", np.arange(12), (0, 1, 2)),), rules, Stream(2, shuffled=False))
        kind = kind or data_type("classification")
        self.journal = lambda number: folder / f"{number}.journal"
        self.keeper = PrequentialServer(
            exam,
            PrequentialSpec(**spec),
            DataFeed(exam, 1.0, 0, None),
            kind,
            1,
            self.journal,
            lambda: 0.0,
            lambda parts: [],
            lambda chunk: None,
            tells=True,
            receives_feedback=hears,
        )

    def answer(self, chunk: int, labels) -> None:
        self.keeper.store_predictions(chunk, np.asarray(labels), "me")


class AsGiven(DataType):
    """Takes answers as they lie in memory."""

    name: ClassVar[str] = "as given"

    def sample_scores(self, labels, answers):
        return np.asarray(labels == answers, np.float64)


def test_an_answer_that_is_changed_later_counts_as_it_was_given(tmp_path):
    """A learner may write the labels that it is told into the array that it has returned."""
    asked = Asked(tmp_path, kind=AsGiven())
    asked.keeper.begin(1)
    asked.keeper.start()
    asked.keeper.next_chunk()
    labels = np.zeros(2, np.int64)
    asked.answer(1, labels)
    labels[:] = [0, 1]
    for chunk in (2, 3):
        asked.keeper.next_chunk()
        asked.answer(chunk, [0, 0])
    np.testing.assert_array_equal(asked.keeper.record(last=False)["scores"], [1, 0, 0, 1, 0, 0])


def test_the_keeper_tells_in_order_and_once(tmp_path):
    asked = Asked(tmp_path)
    asked.keeper.begin(1)
    assert errors_of(asked.keeper.next_chunk) == [("broken-rule", "")]
    asked.keeper.start()
    assert errors_of(asked.keeper.start) == [("broken-rule", "")]
    assert asked.keeper.next_chunk().number == 1
    assert errors_of(asked.keeper.next_chunk) == [("broken-rule", "")]
    assert errors_of(asked.answer, 3, [0, 1]) == [("broken-rule", "")]
    asked.answer(1, [0, 1])
    assert errors_of(asked.answer, 1, [0, 1]) == [("broken-rule", "")]


def test_no_question_says_more_than_its_samples(tmp_path):
    asked = Asked(tmp_path)
    asked.keeper.begin(1)
    asked.keeper.start()
    assert vars(asked.keeper.next_chunk()).keys() == {"number", "x", "name", "label_shape"}


def test_the_first_answer_counts_over_a_kill_and_a_torn_entry_does_not(tmp_path):
    before = Asked(tmp_path)
    before.keeper.begin(1)
    before.keeper.start()
    for chunk, labels in ((1, [2, 2]), (2, [1, 1])):
        before.keeper.next_chunk()
        before.answer(chunk, labels)
    held = before.journal(1).read_bytes()
    before.journal(1).write_bytes(held[:-3])  # killed while it was written: nothing had been told of it
    after = Asked(tmp_path)
    after.keeper.begin(1)
    after.keeper.start()
    for chunk, labels in ((1, [0, 1]), (2, [2, 0]), (3, [0, 0])):
        after.keeper.next_chunk()
        after.answer(chunk, labels)
    assert after.keeper.differing == [1]
    np.testing.assert_array_equal(after.keeper.record(last=False)["said"], [2, 2, 2, 0, 0, 0])


def test_first_answers_of_many_bytes_count_over_a_kill(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    journal, masks = Journal(tmp_path / "1.journal"), np.ones((17, 1024, 1024), np.uint8)
    journal.add(0, masks)
    journal.close()
    shutil.rmtree(temporary)  # temporary files go with the process that was killed
    np.testing.assert_array_equal(Journal(tmp_path / "1.journal").first(0), masks)


def test_answers_that_are_still_to_be_told_of_outlive_their_round(tmp_path):
    asked = Asked(tmp_path, hears=True, delay=4)
    for round_, chunks in ((1, (1, 2, 3)), (2, (4, 5, 6))):
        asked.keeper.begin(round_)
        asked.keeper.start()
        for chunk in chunks:
            asked.keeper.next_chunk()
            asked.answer(chunk, [0, 0])
        asked.keeper.record(last=round_ == 2)
        asked.keeper.end()
        assert asked.journal(1).exists() == (round_ == 1)
    assert asked.keeper.revealed_so_far == 4
