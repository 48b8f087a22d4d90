"""Intersection over union of label pictures against torchmetrics, a loop over pixels, and counts by hand."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torchmetrics.functional.classification import multiclass_jaccard_index

from ianvs.exam.metrics import EvaluationRecord, find, picture_confusion

CLASSES = ("road", "car", "sky", "train", "pole")
LABELS = st.sampled_from([0, 1, 2, 4, 255])  # class 3 occurs nowhere; 255 is ignored, or predicted as such
PICTURES = arrays(np.uint8, (2, 3, 4), elements=LABELS)


def score(name, counts, **facts):
    return find(name).function(EvaluationRecord(CLASSES, counts=counts, **facts))


def counted(truth, answer):
    """[i, j] pixels of class i that were said to be j, pixel by pixel; column 5 for "ignore"."""
    counts = np.zeros((5, 6), dtype=np.int64)
    for t, a in zip(truth.ravel().tolist(), answer.ravel().tolist(), strict=True):
        if t != 255:
            counts[t, 5 if a == 255 else a] += 1
    return counts


def iou(truth, answer, c):
    """From sets of pixels, as iouEval.py defines them; None for a class in neither."""
    valid = truth != 255
    hits = int(((truth == c) & (answer == c)).sum())
    union = int((valid & ((truth == c) | (answer == c))).sum())
    return hits / union if union else None


@given(PICTURES, PICTURES)
def test_counts_are_those_of_a_loop_over_pixels_for_arrays_and_tensors(truth, answer):
    expected = counted(truth, answer)
    np.testing.assert_array_equal(picture_confusion(truth, answer, 5), expected)
    np.testing.assert_array_equal(picture_confusion(truth, torch.from_numpy(answer), 5), expected)


@pytest.mark.parametrize("classes", [1, 2, 180, 181, 255])
def test_counts_hold_any_number_of_classes(classes):
    rng = np.random.default_rng(classes)
    truth, answer = (rng.choice([*range(classes), 255], (3, 50, 40)).astype(np.uint8) for _ in range(2))
    expected = np.zeros((classes, classes + 1), dtype=np.int64)
    valid = truth != 255
    np.add.at(expected, (truth[valid], np.minimum(answer[valid].astype(int), classes)), 1)
    np.testing.assert_array_equal(picture_confusion(truth, answer, classes), expected)
    np.testing.assert_array_equal(picture_confusion(truth, torch.from_numpy(answer), classes), expected)


@given(PICTURES, PICTURES)
def test_ious_are_those_of_sets_of_pixels(truth, answer):
    counts = picture_confusion(truth, answer, 5)
    each = [iou(truth, answer, c) for c in range(5)]
    for name, expected in zip(CLASSES, each, strict=True):
        ours = score("per_class_IoU", counts)[name]
        assert math.isnan(ours) if expected is None else ours == pytest.approx(expected, abs=1e-12)
    present = [value for value in each if value is not None]
    assert score("mIoU", counts) == pytest.approx(np.mean(present) if present else math.nan, nan_ok=True)
    valid = truth != 255
    if valid.any():
        assert score("mIoU_all", counts) == pytest.approx(sum(present) / 5)
        assert score("pixel_accuracy", counts) == pytest.approx((truth == answer)[valid].mean())
    else:
        assert math.isnan(score("mIoU_all", counts))
        assert math.isnan(score("pixel_accuracy", counts))


def test_ious_agree_with_torchmetrics():
    rng = np.random.default_rng(0)
    truth = rng.choice([0, 1, 2, 4, 255], (3, 16, 20)).astype(np.uint8)
    answer = np.where(rng.random(truth.shape) < 0.6, truth, rng.choice([0, 1, 2, 4, 255], truth.shape)).astype(np.uint8)
    counts = picture_confusion(truth, answer, 5)
    # "Ignore" as an answer is a sixth class to torchmetrics, whose own score is left out.
    said = torch.from_numpy(np.minimum(answer, 5)).long()
    oracle = multiclass_jaccard_index(said, torch.from_numpy(truth).long(), 6, average=None, ignore_index=255)[:5]
    ours = list(score("per_class_IoU", counts).values())
    assert math.isnan(ours[3])
    assert np.nan_to_num(ours) == pytest.approx(oracle.tolist(), abs=1e-6)
    assert score("mIoU_all", counts) == pytest.approx(oracle.mean().item(), abs=1e-6)
    assert score("mIoU", counts) == pytest.approx(oracle[[0, 1, 2, 4]].mean().item(), abs=1e-6)
    plain = multiclass_jaccard_index(said.clamp(max=4), torch.from_numpy(truth).long(), 5, ignore_index=255)
    without = picture_confusion(truth, np.minimum(answer, 4), 5)
    assert score("mIoU", without) == pytest.approx(plain.item(), abs=1e-6)


def test_predicting_ignore_is_a_miss_of_the_true_class_and_nothing_else():
    truth = np.array([[[0, 0, 1, 255]]], dtype=np.uint8)
    answer = np.array([[[0, 255, 1, 1]]], dtype=np.uint8)  # the last pixel's truth is ignored: no FP of class 1
    counts = picture_confusion(truth, answer, 5)
    assert score("per_class_IoU", counts, labels=(1, 0)) == {"car": 1.0, "road": 0.5}
    assert score("mIoU", counts) == 0.75
    assert score("accuracy", counts) == pytest.approx(2 / 3)
    assert score("balanced_accuracy", counts) == 0.75
    assert score("f1", counts) == pytest.approx((2 / 3 + 1) / 2)


def test_miou_all_is_over_the_class_list_of_the_test_set():
    counts = np.zeros((5, 6), dtype=np.int64)
    counts[0, 0], counts[1, 1], counts[1, 0] = 6, 1, 2
    assert score("mIoU_all", counts) == pytest.approx((6 / 8 + 1 / 3) / 5)
    assert score("mIoU_all", counts, labels=(1, 0, 3)) == pytest.approx((6 / 8 + 1 / 3) / 3)
    assert list(score("per_class_IoU", counts, labels=(3, 1))) == ["train", "car"]


def test_seen_and_novel_part_the_class_list_of_the_test_set():
    counts = np.zeros((5, 6), dtype=np.int64)
    counts[0, 0], counts[1, 1], counts[1, 0], counts[2, 2] = 6, 1, 2, 5
    facts = {"labels": (0, 1, 2, 3), "earlier": (0, 4)}
    assert score("mIoU_seen", counts, **facts) == pytest.approx(6 / 8)
    assert score("mIoU_novel", counts, **facts) == pytest.approx((1 / 3 + 1) / 2)  # class 3 occurs nowhere
    assert math.isnan(score("mIoU_seen", counts, labels=(0, 1), earlier=()))
    assert math.isnan(score("mIoU_novel", counts, labels=(0,), earlier=(0, 1)))
    assert math.isnan(score("mIoU_seen", counts))
    assert math.isnan(score("mIoU_novel", counts))
