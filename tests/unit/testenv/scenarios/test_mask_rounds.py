"""Rounds of classes in masks: images, labels and scores, against statements over single pixels."""

import json
from dataclasses import replace

import numpy as np
import pytest

from ianvs.exam.data.dataset import Dataset, Samples
from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.scenarios import manifest
from ianvs.exam.scenarios.manifest import load_manifest
from ianvs.running.session.feed import DataFeed
from ianvs.testenv.metrics.overlap import mean_iou_new, mean_iou_old, mean_iou_taught
from tests.errors import errors_of
from tests.unit.testenv.scenarios.test_rounds import exam_of

NAMES = ("background", "a", "b", "c", "d")
SETS = [[1], [1, 2], [2, 3], [1, 4], [3], [4, 2], [0]]  # the classes of each training image, beside the background
GROUPS = {"round_classes": [["background", "a", "b"], ["c"], ["d"]]}


def dataset():
    def masks(sets):
        found = np.zeros((len(sets), 3, 4), dtype=np.uint8)
        for mask, classes in zip(found, sets, strict=True):
            mask.flat[: len(classes)] = classes
            mask.flat[-1] = 255
        return found

    def part(name, sets):
        ids = np.array([f"{name}/{i}" for i in range(len(sets))])
        return Samples(np.zeros((len(sets), 3, 4, 3), np.uint8), masks(sets), ids)

    test = part("test", [[1, 2, 3, 4], [1]])
    return Dataset("toy", "segmentation", part("train", SETS), test, NAMES, "f" * 64, ignore_index=255)


@pytest.mark.parametrize(
    ("cut", "images", "shown"),
    [
        ("overlapping", [[0, 1, 2, 3, 5], [2, 4], [3, 5]], [{1, 2}, {3}, {4}]),
        ("disjoint", [[0, 1], [2, 4], [3, 5]], [{1, 2}, {3}, {4}]),
        ("sequential", [[0, 1], [2, 4], [3, 5]], [{1, 2}, {1, 2, 3}, {1, 2, 3, 4}]),
    ],
)
def test_each_cut_has_its_images_and_tells_its_classes(cut, images, shown):
    data = dataset()
    exam = exam_of(data, "class-incremental", {"cut": cut, **GROUPS})
    assert [r.classes for r in exam.rounds] == [(0, 1, 2), (3,), (4,)]
    assert [r.train.tolist() for r in exam.rounds] == images
    assert all(t.test.tolist() == [0, 1] for t in exam.tests)
    for round_exam in (exam, load_manifest(data, json.loads(json.dumps(manifest(exam))))):
        feed = DataFeed(round_exam, 1.0, 0, None)
        for k, (positions, classes) in enumerate(zip(images, shown, strict=True), start=1):
            found = feed.round(k).columns["y"].gather()
            for mask, position in zip(found, positions, strict=True):
                for pixel, truth in zip(mask.flat, data.train.y[position].flat, strict=True):
                    assert pixel == (truth if truth in classes or truth == 255 else 0)


def test_a_reference_gets_each_image_once_with_all_that_was_taught():
    exam = exam_of(dataset(), "class-incremental", GROUPS)
    columns = DataFeed(exam, 1.0, 0, None).rounds(1, 2).columns
    assert sorted(columns["ids"].gather().tolist()) == [f"train/{i}" for i in (0, 1, 2, 3, 4, 5)]
    assert set(np.unique(columns["y"].gather())) == {0, 1, 2, 3, 255}


def test_sizes_and_the_first_round_do_not_count_the_background():
    for options in ({"first": 2, "rounds": 3}, {"sizes": [2, 1, 1]}):
        exam = exam_of(dataset(), "class-incremental", options)
        assert [r.classes for r in exam.rounds] == [(0, 1, 2), (3,), (4,)]
    other = exam_of(dataset(), "class-incremental", {"rounds": 2, "background": "b"})
    assert [r.classes for r in other.rounds] == [(2, 0, 1), (3, 4)]


def test_scores_are_means_over_taught_classes_pixel_by_pixel():
    rng = np.random.default_rng(0)
    truth, said = rng.integers(0, 5, 400), rng.integers(0, 4, 400)
    counts = np.zeros((5, 6), np.int64)
    np.add.at(counts, (truth, said), 1)
    record = EvaluationRecord(NAMES, counts=counts, seen=(0, 1, 2, 3), seen_first=(0, 1, 2))
    known = truth < 4

    def iou(c):
        right = ((truth == c) & (said == c) & known).sum()
        return right / (((truth == c) | (said == c)) & known).sum()

    assert mean_iou_old.function(record) == pytest.approx(np.mean([iou(c) for c in (0, 1, 2)]))
    assert mean_iou_new.function(record) == pytest.approx(iou(3))
    assert mean_iou_taught.function(record) == pytest.approx(np.mean([iou(c) for c in range(4)]))
    assert np.isnan(mean_iou_new.function(replace(record, seen=(0, 1, 2))))
    assert np.isnan(mean_iou_old.function(replace(record, seen=None)))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("class-incremental", {"cut": "exclusive", **GROUPS}),
        ("class-incremental", {"rounds": 3, "background": "sky"}),
        ("class-incremental", {"round_classes": [["background"], ["a", "b", "c", "d"]]}),
        ("task-incremental", GROUPS),
        ("task-free", {**GROUPS, "batch": 2}),
    ],
    ids=["cut", "background", "empty", "task", "stream"],
)
def test_what_masks_can_not_have_is_refused(name, options):
    assert {code for code, _ in errors_of(exam_of, dataset(), name, options)} <= {"invalid-scenario", "invalid-option"}


def test_a_background_is_named_where_none_is_called_so():
    plain = replace(dataset(), classes=("road", "a", "b", "c", "d"))
    assert errors_of(exam_of, plain, "class-incremental", {"rounds": 2}) == [("invalid-scenario", "")]
