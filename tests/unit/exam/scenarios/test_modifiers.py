"""Modifiers change what rounds bring by the numbers that are asked for, and leave test sets alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.errors import Location
from ianvs.config.spec import ScenarioSpec
from ianvs.exam.scenarios import build_exam, check_scenario
from tests.errors import errors_of, recorded
from tests.unit.exam.scenarios.exams import exam_of, same_exam
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets, texts

EIGHT = dataset_of([*range(8)] * 25, [*range(8)] * 2)  # 25 samples of each of 8 classes
SCENARIOS = [
    ("CIL", {"rounds": 4}),
    ("TIL", {"rounds": 2}),
    ("IIL", {"rounds": 3}),
    ("DIL", {"permutation": True, "rounds": 2}),
    ("online", {"rounds": 4, "batch": 1}),
    ("BBCL", {"rounds": 4, "M": 30}),
    ("BBCL", {"rounds": 4, "kind": "dirichlet", "alpha": 1}),
]


def modified(name, options, **modifiers):
    return exam_of(EIGHT, name, {**options, "modifiers": modifiers})


def per_class(exam, round_):
    return np.bincount(exam.dataset.train.y[round_.train], minlength=8)


@given(scenario=st.sampled_from(SCENARIOS), shots=st.integers(1, 30), first=st.booleans(), seed=st.integers(0, 3))
def test_few_shots_are_left_of_each_class_in_every_later_round(scenario, shots, first, seed):
    plain = exam_of(EIGHT, *scenario)
    exam = modified(*scenario, few_shot={"shots": shots, "first": first}, seed=seed)
    for k, (cut, whole) in enumerate(zip(exam.rounds, plain.rounds, strict=True)):
        found = per_class(plain, whole)
        expected = np.minimum(found, shots) if k or first else found
        assert per_class(exam, cut).tolist() == expected.tolist()
        assert cut.classes == whole.classes
        # An excerpt in the same order:
        assert cut.train.tolist() == [p for p in whole.train.tolist() if p in set(cut.train.tolist())]


def test_a_number_of_shots_spares_the_first_round():
    assert same_exam(modified("CIL", {"rounds": 4}, few_shot=5), modified("CIL", {"rounds": 4}, few_shot={"shots": 5}))
    assert [len(r.train) for r in modified("CIL", {"rounds": 4}, few_shot=5).rounds] == [50, 10, 10, 10]


@given(scenario=st.sampled_from(SCENARIOS), rate=st.floats(0, 0.99), kind=st.sampled_from(["symmetric", "pairflip"]))
def test_the_share_of_wrong_labels_is_exact_and_wrong_ones_are_of_the_round(scenario, rate, kind):
    exam = modified(*scenario, label_noise={"rate": rate, "kind": kind})
    for round_ in exam.rounds:
        true = EIGHT.train.y[round_.train]
        wrong = round_.labels != true
        assert round_.labels.dtype == np.int64
        assert wrong.sum() == int(len(true) * rate + 0.5)
        assert set(round_.labels.tolist()) <= set(round_.classes)
        if kind == "pairflip":
            following = dict(zip(round_.classes, (*round_.classes[1:], round_.classes[0]), strict=True))
            assert round_.labels[wrong].tolist() == [following[label] for label in true[wrong].tolist()]


def test_symmetric_noise_is_even_over_the_other_classes():
    dataset = dataset_of([*range(4)] * 2000, range(4))
    (round_,) = exam_of(dataset, "CIL", {"rounds": 1, "modifiers": {"label_noise": 0.6}}).rounds
    true = dataset.train.y[round_.train]
    flips = np.array([np.bincount(round_.labels[true == c], minlength=4) / 2000 for c in range(4)])
    np.testing.assert_allclose(flips, np.full((4, 4), 0.2) + 0.2 * np.eye(4), atol=0.04)


@given(scenario=st.sampled_from(SCENARIOS), share=st.floats(0.01, 1), noise=st.sampled_from([None, 0.3]))
def test_a_share_of_labels_is_told_and_one_of_each_class_at_least(scenario, share, noise):
    exam = modified(*scenario, labelled=share, **({"label_noise": noise} if noise else {}))
    whole = modified(*scenario, label_noise=noise) if noise else exam_of(EIGHT, *scenario)
    for round_, full in zip(exam.rounds, whole.rounds, strict=True):
        labels = EIGHT.train.y[round_.train] if full.labels is None else full.labels
        told = round_.labels >= 0
        assert round_.labels[told].tolist() == labels[told].tolist()
        assert set(round_.labels[~told].tolist()) <= {-1}
        assert set(labels[told].tolist()) == set(labels.tolist())
        assert told.sum() >= round(share * len(labels)) - 1
        assert told.sum() <= round(share * len(labels)) + len(set(labels.tolist()))


@given(ratio=st.floats(0.01, 1), scenario=st.sampled_from(SCENARIOS))
def test_a_long_tail_falls_geometrically_in_the_order_of_classes(ratio, scenario):
    exam = modified(*scenario, long_tail=ratio)
    used = np.unique(np.concatenate([r.train for r in exam.rounds]))
    expected = [max(1, int(25 * ratio ** (c / 7) + 0.5)) for c in range(8)]
    assert np.bincount(EIGHT.train.y[used], minlength=8).tolist() == expected
    for round_ in exam.rounds:
        assert set(round_.classes) == set(EIGHT.train.y[round_.train].tolist())


def test_the_tail_follows_the_order_in_which_classes_come():
    exam = modified("CIL", {"rounds": 8, "class_order": [*range(7, -1, -1)]}, long_tail=0.04)
    assert (len(exam.rounds[0].train), len(exam.rounds[-1].train)) == (25, 1)
    assert exam.rounds[-1].classes == (0,)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario[0])
def test_test_sets_and_rules_are_never_changed(scenario):
    plain = exam_of(EIGHT, *scenario)
    exam = modified(*scenario, few_shot=2, label_noise=0.5, labelled=0.5, long_tail=0.1)
    assert (exam.rules, exam.stream) == (plain.rules, plain.stream)
    for test, same in zip(exam.tests, plain.tests, strict=True):
        assert (test.name, test.classes) == (same.name, same.classes)
        np.testing.assert_array_equal(test.test, same.test)


def test_without_noise_and_withholding_labels_are_the_datasets_own():
    assert all(r.labels is None for r in modified("CIL", {"rounds": 4}, few_shot=3, long_tail=0.5).rounds)


def test_a_seed_fixes_what_is_drawn_and_another_one_changes_it():
    settings_ = {"few_shot": 5, "label_noise": 0.3, "labelled": 0.5, "long_tail": 0.3}
    exams = [modified("CIL", {"rounds": 4}, **settings_, seed=seed) for seed in (1, 1, 2)]
    assert same_exam(exams[0], exams[1])
    assert not same_exam(exams[0], exams[2])


def test_a_modifier_that_is_added_does_not_shift_what_another_one_draws():
    alone, both = (modified("CIL", {"rounds": 4}, label_noise=0.3, **more) for more in ({}, {"labelled": 0.5}))
    for one, other in zip(alone.rounds, both.rounds, strict=True):
        told = other.labels >= 0
        assert one.labels[told].tolist() == other.labels[told].tolist()


def test_a_single_task_learns_what_the_modified_rounds_bring():
    options = {"rounds": 4, "modifiers": {"few_shot": 5, "label_noise": 0.2}}
    exam = exam_of(EIGHT, "CIL", options)
    (everything,) = exam_of(EIGHT, "CIL", options, as_one=True).rounds
    assert sorted(everything.train.tolist()) == sorted(np.concatenate([r.train for r in exam.rounds]).tolist())
    told = {p: label for r in exam.rounds for p, label in zip(r.train.tolist(), r.labels.tolist(), strict=True)}
    assert everything.labels.tolist() == [told[p] for p in everything.train.tolist()]


@pytest.mark.parametrize(
    ("modifiers", "expected"),
    [
        ({"few_shots": 5}, [("unknown-option", "testenv.yaml:7:5")]),
        ({"few_shot": 0}, [("invalid-option", "testenv.yaml:7:5")]),
        ({"few_shot": {"first": True}}, [("invalid-option", "testenv.yaml:7:5")]),
        ({"few_shot": {"shots": 5, "firs": True}}, [("unknown-option", "testenv.yaml:7:5")]),
        ({"few_shot": "five"}, [("invalid-option", "testenv.yaml:7:5")]),
        ({"label_noise": {"rate": 0.1, "kind": "pair"}}, [("invalid-option", "testenv.yaml:7:5")]),
        ({"label_noise": 1}, [("invalid-option", "testenv.yaml:7:5")]),
        ({"labelled": 0}, [("invalid-option", "testenv.yaml:7:5")]),
        ({"long_tail": 2}, [("invalid-option", "testenv.yaml:7:5")]),
    ],
)
def test_a_slip_is_found_without_the_data_at_its_place(modifiers, expected):
    place = Location(Path("testenv.yaml"), 7, 5)
    spec = ScenarioSpec("CIL", {"rounds": 4, "modifiers": modifiers}, places={"modifiers": place})
    assert recorded(check_scenario(spec)) == expected


def test_labels_of_one_class_cant_be_wrong():
    assert errors_of(modified, "CIL", {"rounds": 8}, label_noise=0.1) == [("invalid-scenario", "")]


@pytest.mark.parametrize("dataset", [texts(), streets()], ids=["texts", "label pictures"])
def test_a_class_per_sample_is_needed(dataset):
    assert errors_of(build_exam, dataset, ScenarioSpec("IIL", {"rounds": 2, "modifiers": {"labelled": 0.5}})) == [
        ("invalid-scenario", "")
    ]
