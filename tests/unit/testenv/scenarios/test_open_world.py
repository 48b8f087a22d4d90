"""Open worlds: what rounds bring, what is unseen when, and what may be answered."""

import numpy as np
import pytest

from ianvs.config import load_job
from ianvs.exam import data
from ianvs.exam.data.parts import Part
from ianvs.exam.data_types import data_type
from ianvs.exam.scenarios import build_exam
from tests.errors import errors_of
from tests.jobs import write_job


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    from ianvs.config.spec import DatasetSpec

    return data.load(DatasetSpec(name="digits"), tmp_path_factory.mktemp("cache"))


def exam(digits, folder, options):
    testenv = f"dataset: {{name: digits}}\nscenario: {{name: open-world, {options}}}\nmetrics: [accuracy]"
    return build_exam(digits, load_job(write_job(folder, testenv=testenv)).testenvs[0].scenario)


def test_samples_come_once_new_classes_in_their_round_and_a_share_again_later(digits, tmp_path):
    found = exam(digits, tmp_path, "rounds: 5, returning: 0.3")
    everything = np.concatenate([round_.train for round_ in found.rounds])
    assert sorted(everything.tolist()) == list(range(len(digits.train)))
    assert len(np.unique(everything)) == len(everything)
    for k, round_ in enumerate(found.rounds):
        assert round_.classes == tuple(range(2 * k + 2))
    labels = digits.train.y
    for label in range(8):
        home, total = found.rounds[label // 2].train, (labels == label).sum()
        assert (labels[home] == label).sum() == pytest.approx(0.7 * total, abs=1)
        later = [(labels[round_.train] == label).sum() for round_ in found.rounds[label // 2 + 1 :]]
        assert max(later) - min(later) <= 8  # dealt evenly, two classes of a round together
    assert [test.classes for test in found.tests] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    assert found.rules.unseen == "classes"


def test_domains_are_those_of_domain_incremental(digits, tmp_path):
    found = exam(digits, tmp_path, "domains: {rotation: [0, 90]}")
    assert [round_.name for round_ in found.rounds] == ["0 degrees", "90 degrees"]
    assert (found.rules.unseen, found.rules.output_space) == ("rounds", "all")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("domains: {rotaton: [0]}", ("invalid-scenario", "testenv.yaml:3:32")),
        ("domains: {rotation: [0, 0]}", ("invalid-scenario", "testenv.yaml:3:32")),
        ("domains: {streaming: true}", ("invalid-scenario", "testenv.yaml:3:32")),
        ("domains: {rotation: [0, 90]}, returning: 0.1", ("invalid-option", "testenv.yaml:3:20")),
        ("domains: {rotation: [0, 90]}, rounds: 3", ("round-count-conflict", "testenv.yaml:3:62")),
    ],
)
def test_slips_are_told(digits, tmp_path, monkeypatch, options, error):
    monkeypatch.chdir(tmp_path)
    assert errors_of(exam, digits, tmp_path, options) == [error]


def test_minus_one_is_an_answer_in_an_open_world_alone(digits):
    part = Part(digits.test, np.arange(3))
    kind = data_type("classification")
    assert kind.checker(part, 10, unseen=True)([-1, 3, 9], "me").tolist() == [-1, 3, 9]
    assert errors_of(lambda: kind.checker(part, 10)([-1, 3, 9], "me")) == [("invalid-result", "")]
    assert errors_of(lambda: kind.checker(part, 10, unseen=True)([-2, 3, 9], "me")) == [("invalid-result", "")]
