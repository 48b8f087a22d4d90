"""What each scenario promises of its rounds (METHODS F.1): nothing lost, nothing twice, labels as the table says."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.config.spec import ScenarioSpec
from ianvs.exam.scenarios import build_exam, manifest
from tests.errors import errors_of
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets, texts


def exam_of(dataset, name, options=None, **settings):
    return build_exam(dataset, ScenarioSpec(name, options or {}), **settings)


def assert_shared_out(rounds, count):
    """Every sample is in exactly one round."""
    assert sorted(np.concatenate(rounds).tolist()) == list(range(count))


@st.composite
def labelled(draw, classes=None):
    """(train labels, test labels, number of classes), every class in both parts at least once."""
    count = classes or draw(st.integers(1, 8))
    more = st.lists(st.integers(0, count - 1), max_size=30)
    train, test = (draw(st.permutations([*range(count), *draw(more)])) for _ in range(2))
    return train, test, count


@given(data=st.data())
def test_class_incremental_rounds_hold_disjoint_classes_and_all_samples(data):
    train, test, count = data.draw(labelled())
    rounds = data.draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
    seed = data.draw(st.none() | st.integers(0, 5))
    dataset = dataset_of(train, test)
    exam = exam_of(dataset, "class-incremental", {"rounds": rounds, **({} if seed is None else {"order_seed": seed})})
    assert_shared_out([r.train for r in exam.rounds], len(train))
    assert_shared_out([t.test for t in exam.tests], len(test))
    assert sorted(c for r in exam.rounds for c in r.classes) == list(range(count))
    for r, t in zip(exam.rounds, exam.tests, strict=True):
        assert len(r.classes) == count // rounds
        assert r.classes == t.classes
        assert set(dataset.train.y[r.train]) == set(r.classes)
        assert set(dataset.test.y[t.test]) == set(r.classes)


def test_named_orders_of_classes():
    """CL-DETR's code (Liu et al. 2023) shuffles the ids of COCO's 80 classes by numpy's global generator."""
    eighty = list(range(80))
    exam = exam_of(dataset_of(eighty, eighty), "class-incremental", {"rounds": 80, "class_order": "shuffled_123"})
    ids = list(range(80))
    np.random.seed(123)
    np.random.shuffle(ids)
    assert [r.classes[0] for r in exam.rounds] == ids
    assert ids[:10] == [64, 58, 59, 4, 69, 53, 31, 77, 8, 43]
    dataset = dataset_of([0, 1, 2], [0, 1, 2])
    dataset = replace(dataset, classes=("dog", "cat", "cow"))
    exam = exam_of(dataset, "class-incremental", {"rounds": 3, "class_order": "alphabetical"})
    assert [r.name for r in exam.rounds] == ["cat", "cow", "dog"]
    assert errors_of(exam_of, dataset, "class-incremental", {"rounds": 3, "class_order": "shuffled"}) == [
        ("invalid-option", "")
    ]


@given(parts=labelled(), rounds=st.integers(1, 5), seed=st.integers(0, 3), per_round=st.booleans())
def test_instance_incremental_rounds_share_out_all_samples_equally(parts, rounds, seed, per_round):
    train, test, _ = parts
    rounds = min(rounds, len(train), len(test))
    options = {"rounds": rounds, "seed": seed, "test": "per_round" if per_round else "shared"}
    exam = exam_of(dataset_of(train, test), "instance-incremental", options)
    assert_shared_out([r.train for r in exam.rounds], len(train))
    assert_shared_out([t.test for t in exam.tests], len(test))
    assert len(exam.tests) == (rounds if per_round else 1)
    sizes = [len(r.train) for r in exam.rounds]
    assert max(sizes) - min(sizes) <= 1


@given(data=st.data())
def test_domain_incremental_rounds_hold_one_domain_each(data):
    train, test, _ = data.draw(labelled())
    names = ("p", "q", "r")[: data.draw(st.integers(1, 3))]
    homes = [
        [*names, *data.draw(st.lists(st.sampled_from(names), min_size=len(y), max_size=len(y)))][: max(len(y), 3)]
        for y in (train, test)
    ]
    train, test = ((y * 3)[: len(home)] for y, home in zip((train, test), homes, strict=True))
    dataset = dataset_of(train, test, domains=homes)
    using = tuple(data.draw(st.permutations(names)))
    exam = exam_of(dataset, "domain-incremental", using=using)
    assert tuple(r.name for r in exam.rounds) == tuple(t.name for t in exam.tests) == using
    assert_shared_out([r.train for r in exam.rounds], len(train))
    assert_shared_out([t.test for t in exam.tests], len(test))
    for r, t in zip(exam.rounds, exam.tests, strict=True):
        assert set(dataset.train.domains[r.train]) == set(dataset.test.domains[t.test]) == {r.name}
        assert set(dataset.train.y[r.train]) == set(r.classes)


@given(parts=labelled(), rounds=st.integers(1, 5), method=st.sampled_from(["default", "shuffled"]))
def test_without_a_scenario_the_samples_are_cut(parts, rounds, method):
    train, test, _ = parts
    rounds = min(rounds, len(train))
    exam = build_exam(dataset_of(train, test), None, incremental_rounds=rounds, splitting_method=method)
    assert_shared_out([r.train for r in exam.rounds], len(train))
    assert [t.test.tolist() for t in exam.tests] == [list(range(len(test)))]
    sizes = [len(r.train) for r in exam.rounds]
    assert max(sizes) - min(sizes) <= 1
    if method == "default":
        assert np.concatenate([r.train for r in exam.rounds]).tolist() == list(range(len(train)))
    else:
        for label in set(train):
            counts = [np.sum(np.asarray(train)[r.train] == label) for r in exam.rounds]
            assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("class-incremental", {"rounds": 2, "order_seed": 3}),
        ("instance-incremental", {"rounds": 3, "seed": 3, "test": "per_round"}),
        ("domain-incremental", {"rounds": 3, "permutation": True, "seed": 3}),
    ],
)
def test_a_seed_fixes_the_exam_and_another_one_changes_it(name, options):
    dataset = dataset_of(list(range(6)) * 4, list(range(6)) * 2, shape=(4, 4, 3))
    first, again = (manifest(exam_of(dataset, name, options)) for _ in range(2))
    assert first == again
    other = {key: value + 1 if "seed" in key else value for key, value in options.items()}
    assert manifest(exam_of(dataset, name, other)) != first


def test_a_first_round_may_be_larger():
    exam = exam_of(dataset_of(range(10), range(10)), "CIL", {"first": 4, "rounds": 4})
    assert [r.classes for r in exam.rounds] == [(0, 1, 2, 3), (4, 5), (6, 7), (8, 9)]


def test_classes_come_in_the_order_that_is_asked_for_by_name_or_index():
    exam = exam_of(dataset_of(range(4), range(4)), "CIL", {"rounds": 2, "class_order": ["c2", 0, 3, "c1"]})
    assert [r.classes for r in exam.rounds] == [(2, 0), (3, 1)]
    assert [r.name for r in exam.rounds] == ["c2+c0", "c3+c1"]


def test_sizes_say_how_many_samples_each_round_brings():
    exam = exam_of(dataset_of([0] * 7, [0]), "IIL", {"sizes": [1, 4, 2]})
    assert [len(r.train) for r in exam.rounds] == [1, 4, 2]


def test_natural_domains_come_in_the_order_of_their_first_samples():
    dataset = dataset_of([0] * 4, [0] * 2, domains=(["q", "p", "q", "p"], ["p", "q"]))
    assert [r.name for r in exam_of(dataset, "DIL").rounds] == ["q", "p"]


@pytest.mark.parametrize(
    ("name", "options", "training", "testing", "space"),
    [
        ("class-incremental", {"rounds": 2}, True, False, "seen"),
        ("domain-incremental", {"rotation": [0, 90]}, True, False, "all"),
        ("instance-incremental", {"rounds": 2}, False, False, "all"),
    ],
)
def test_rules_are_those_of_the_surveys_table(name, options, training, testing, space):
    rules = exam_of(dataset_of([0, 1] * 4, [0, 1], shape=(4, 4, 1)), name, options).rules
    assert (rules.scenario, rules.task_in_training, rules.task_in_testing, rules.output_space) == (
        name,
        training,
        testing,
        space,
    )


def test_permuted_domains_hold_every_sample_and_the_first_is_as_it_is():
    dataset = dataset_of([0, 1] * 5, [0, 1], shape=(4, 4, 3))
    exam = exam_of(dataset, "DIL", {"permutation": True}, incremental_rounds=3)
    assert exam.rounds[0].transform is None
    x = np.random.default_rng(0).integers(0, 256, (2, 4, 4, 3), dtype=np.uint8)
    pictures = [x, *(r.transform(x) for r in exam.rounds[1:])]
    for r, t, picture in zip(exam.rounds, exam.tests, pictures, strict=True):
        assert r.train.tolist() == list(range(10))
        assert r.transform == t.transform
        assert picture.dtype == np.uint8
        colours = [sorted(map(tuple, image.reshape(-1, 3).tolist())) for image in (picture[0], x[0])]
        assert colours[0] == colours[1]  # whole pixels move
    assert not np.array_equal(pictures[1], pictures[2])


def test_transforms_pickle_and_do_the_same_every_time():
    flat = np.random.default_rng(0).random((3, 10), dtype=np.float32)
    exam = exam_of(dataset_of([0, 1], [0, 1], shape=(10,)), "DIL", {"permutation": True, "rounds": 2})
    transform = exam.rounds[1].transform
    assert not np.array_equal(transform(flat), flat)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(transform))(flat), transform(flat))


def test_one_picture_is_permuted_as_it_is_among_others():
    x = np.random.default_rng(0).random((5, 3, 3, 1), dtype=np.float32)
    exam = exam_of(dataset_of([0, 1], [0, 1], shape=(3, 3, 1)), "DIL", {"permutation": True, "rounds": 2})
    transform = exam.rounds[1].transform
    np.testing.assert_array_equal(transform(x)[3:4], transform(x[3:4]))


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_right_angle_rotates_as_numpy_does(dtype):
    x = np.random.default_rng(0).integers(0, 256, (2, 6, 6, 3)).astype(dtype)
    exam = exam_of(dataset_of([0], [0], shape=(6, 6, 3)), "DIL", {"rotation": [0, 90, -90]})
    still, left, right = (r.transform(x) for r in exam.rounds)
    np.testing.assert_array_equal(still, x)
    np.testing.assert_allclose(left, np.rot90(x, 1, axes=(1, 2)), atol=1)
    np.testing.assert_allclose(right, np.rot90(x, -1, axes=(1, 2)), atol=1)
    assert left.dtype == dtype


@pytest.mark.parametrize("dataset", [texts(), streets()], ids=["texts", "label pictures"])
def test_texts_and_label_pictures_come_in_domains_and_instances(dataset):
    natural = exam_of(dataset, "DIL")
    assert_shared_out([r.train for r in natural.rounds], len(dataset.train))
    assert len(natural.tests) == 2
    cut = exam_of(dataset, "IIL", {"rounds": 2})
    assert_shared_out([r.train for r in cut.rounds], len(dataset.train))
    assert all(r.classes == tuple(range(len(dataset.classes))) for r in (*natural.rounds, *cut.rounds))
    assert_shared_out(
        [r.train for r in build_exam(dataset, None, splitting_method="shuffled").rounds], len(dataset.train)
    )


def test_without_a_scenario_domains_are_rounds_in_the_order_of_using():
    exam = build_exam(streets(), None, using=("dusk", "day"))
    assert [r.name for r in exam.rounds] == [t.name for t in exam.tests] == ["dusk", "day"]
    assert exam.rules.scenario == "ianvs-domains"
    assert not exam.rules.task_in_testing


def test_without_anything_there_are_two_rounds():
    assert len(build_exam(dataset_of([0] * 5, [0]), None).rounds) == 2


def test_a_single_task_is_one_round_of_everything():
    dataset = dataset_of([0, 1, 0], [0, 1], domains=(["p", "q", "p"], ["q", "p"]))
    exam = build_exam(dataset, None, as_one=True, incremental_rounds=3)
    assert [r.train.tolist() for r in exam.rounds] == [[0, 1, 2]]
    assert [t.test.tolist() for t in exam.tests] == [[0, 1]]
    by_domain = build_exam(dataset, None, as_one=True, using=("p", "q"))
    assert [(t.name, t.test.tolist()) for t in by_domain.tests] == [("p", [1]), ("q", [0])]


def test_a_manifest_is_json_and_names_every_sample():
    dataset = dataset_of([0, 1, 1], [1, 0])
    content = json.loads(json.dumps(manifest(exam_of(dataset, "CIL", {"rounds": 2}))))
    assert [r["samples"] for r in content["rounds"]] == [["train/0"], ["train/1", "train/2"]]
    assert [t["classes"] for t in content["tests"]] == [["c0"], ["c1"]]
    assert content["rules"]["output_space"] == "seen"
    assert content["fingerprint"] == dataset.fingerprint


def test_domains_that_samples_do_not_know_are_cut_in_the_order_of_the_files():
    dataset = dataset_of([0, 1] * 4, [0, 1] * 3)
    exam = build_exam(dataset, None, using=("CS", "SYN", "CR"), incremental_rounds=3)
    assert [r.train.tolist() for r in exam.rounds] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert [t.test.tolist() for t in exam.tests] == [[0, 1], [2, 3], [4, 5]]
    assert [r.name for r in exam.rounds] == [t.name for t in exam.tests] == ["round 1", "round 2", "round 3"]


def test_a_domain_scenario_refuses_domains_that_samples_do_not_know():
    assert errors_of(exam_of, dataset_of([0, 1] * 4, [0, 1] * 3), "domain-incremental", using=("CS", "SYN")) == [
        ("invalid-scenario", "")
    ]


def test_more_parts_than_test_samples_are_refused():
    assert errors_of(build_exam, dataset_of([0, 1] * 4, [0, 1]), None, using=("CS", "SYN", "CR")) == [
        ("invalid-scenario", "")
    ]
