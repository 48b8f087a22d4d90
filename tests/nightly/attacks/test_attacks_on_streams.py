"""Learners that try to know the labels of a stream before they have answered."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import numpy as np

import ianvs
from ianvs.config.spec import PrequentialSpec
from ianvs.exam.data.dataset import Dataset, Samples
from ianvs.exam.data_types import DataType, data_type
from ianvs.exam.scenarios.exam import Exam, Round, Rules, Stream, TestSet
from ianvs.processes.sealing.shared_arrays import ArrayWriter
from ianvs.running.session.feed import DataFeed
from ianvs.running.session.learner_messages import AnsweredCall
from ianvs.running.session.stream_keeper import StreamKeeper
from tests.errors import errors_of
from tests.jobs import write_job

SEARCHING = '''
import gc
import sys
import numpy as np


class Searcher:
    """Looks for labels of the chunk that it is asked, everywhere in its process."""

    def answer(self, data, chunk, classes_seen, new_classes):
        wanted = len(data)
        frame, held = sys._getframe(), []
        while frame is not None:
            held += list(frame.f_locals.values())
            frame = frame.f_back
        for one in [*gc.get_objects(), *held]:
            for value in vars(one).values() if hasattr(one, "__dict__") else [one]:
                if isinstance(value, np.ndarray) and value.shape == (wanted,) and value.dtype.kind in "iu":
                    return value % 10
                if isinstance(value, (list, tuple)) and len(value) == wanted and all(type(v) is int for v in value):
                    return [v % 10 for v in value]
        return [0] * wanted

    def predict(self, data):
        return [0] * len(data)

    def feedback(self, told):
        told.labels

    def save(self, path):
        path.write_text("")

    def load(self, path):
        pass
'''
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
    path = write_job(folder, plugin=plugin, name=name, hyperparameters="", testenv=exam, job="seeds: [0]")
    file = folder / "algorithm.yaml"
    file.write_text(file.read_text().replace("paradigm_type: incrementallearning", f"paradigm_type: {paradigm}"))
    return ianvs.run(path)


def test_labels_of_a_question_are_nowhere_in_the_learners_process(tmp_path):
    """Whatever it finds there and answers is no better than the most frequent label of ten."""
    [found] = sat(tmp_path, SEARCHING, "Searcher", "testtimelearning")
    assert found.status == "finished", found.failure
    assert found.metrics["online_accuracy"] < 0.35


def test_a_second_stream_beside_the_first_is_refused(tmp_path):
    [found] = sat(tmp_path, TWICE, "Twice", "{name: Ahead, url: ./plugin.py}")
    assert found.status == "failed" and found.failure is not None
    assert "is asked already" in found.failure.message


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
        self.keeper = StreamKeeper(
            exam,
            PrequentialSpec(**spec),
            DataFeed(exam, 1.0, 0, None),
            kind,
            1,
            self.journal,
            folder,
            lambda: 0.0,
            lambda parts: [],
            lambda chunk: None,
            tells=True,
            hears=hears,
        )

    def answer(self, chunk: int, labels) -> None:
        writer = ArrayWriter()
        spec = writer.array(np.asarray(labels))
        self.keeper.answered(AnsweredCall(chunk=chunk, labels=spec, who="me"), writer.told({}))


class AsGiven(DataType):
    """Takes answers as they lie in memory."""

    name: ClassVar[str] = "as given"

    def sample_scores(self, labels, answers):
        return np.asarray(labels == answers, np.float64)


def test_an_answer_that_came_in_a_file_is_what_was_in_it_then(tmp_path):
    """The file is the learner's own, which writes what it was told in place of what it had answered."""
    asked = Asked(tmp_path, kind=AsGiven())
    asked.keeper.begin(1)
    asked.keeper.start()
    asked.keeper.question()
    writer = ArrayWriter()
    spec = writer.array(np.zeros(2, np.int64))
    writer.array(np.zeros(1 << 16, np.uint8))  # too much for a message
    mine = os.dup(writer.file)
    asked.keeper.answered(AnsweredCall(chunk=1, labels=spec, who="me"), writer.told({}))
    os.pwrite(mine, np.array([0, 1]).tobytes(), 0)
    os.close(mine)
    for chunk in (2, 3):
        asked.keeper.question()
        asked.answer(chunk, [0, 0])
    np.testing.assert_array_equal(asked.keeper.record(last=False)["scores"], [1, 0, 0, 1, 0, 0])


def test_the_keeper_tells_in_order_and_once(tmp_path):
    asked = Asked(tmp_path)
    asked.keeper.begin(1)
    assert errors_of(asked.keeper.question) == [("broken-rule", "")]
    asked.keeper.start()
    assert errors_of(asked.keeper.start) == [("broken-rule", "")]
    assert asked.keeper.question().body["chunk"] == 1
    assert errors_of(asked.keeper.question) == [("broken-rule", "")]
    assert errors_of(asked.answer, 3, [0, 1]) == [("broken-rule", "")]
    assert errors_of(asked.answer, 1, [0, 7]) == [("invalid-result", "")]
    asked.answer(1, [0, 1])
    assert errors_of(asked.answer, 1, [0, 1]) == [("broken-rule", "")]


def test_no_question_says_more_than_its_samples(tmp_path):
    asked = Asked(tmp_path)
    asked.keeper.begin(1)
    asked.keeper.start()
    assert asked.keeper.question().body.keys() == {"more", "chunk", "x", "name", "label_shape"}


def test_the_first_answer_counts_over_a_kill_and_a_torn_entry_does_not(tmp_path):
    before = Asked(tmp_path)
    before.keeper.begin(1)
    before.keeper.start()
    for chunk, labels in ((1, [2, 2]), (2, [1, 1])):
        before.keeper.question()
        before.answer(chunk, labels)
    held = before.journal(1).read_bytes()
    before.journal(1).write_bytes(held[:-3])  # killed while it was written: nothing had been told of it
    after = Asked(tmp_path)
    after.keeper.begin(1)
    after.keeper.start()
    for chunk, labels in ((1, [0, 1]), (2, [2, 0]), (3, [0, 0])):
        after.keeper.question()
        after.answer(chunk, labels)
    assert after.keeper.differing == [1]
    np.testing.assert_array_equal(after.keeper.record(last=False)["said"], [2, 2, 2, 0, 0, 0])


def test_answers_that_are_still_to_be_told_of_outlive_their_round(tmp_path):
    asked = Asked(tmp_path, hears=True, delay=4)
    for round_, chunks in ((1, (1, 2, 3)), (2, (4, 5, 6))):
        asked.keeper.begin(round_)
        asked.keeper.start()
        for chunk in chunks:
            asked.keeper.question()
            asked.answer(chunk, [0, 0])
        asked.keeper.record(last=round_ == 2)
        asked.keeper.end()
        assert asked.journal(1).exists() == (round_ == 1)
    assert asked.keeper.told_so_far == 4
