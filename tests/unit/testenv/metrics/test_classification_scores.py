"""Scores of one evaluation against scikit-learn, torchmetrics and counts by hand."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ianvs.base.errors import InvalidValue
from ianvs.exam.metrics import EvaluationRecord, find
from ianvs.exam.metrics.confusion import confusion_matrix
from tests.errors import errors_of, located, raised

CLASSES = ("road", "car", "sky", "train", "pole")
LABELS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


def score(name, y_true, y_pred, classes=CLASSES):
    return find(name).function(EvaluationRecord(classes, np.array(y_true), np.array(y_pred)))


@given(LABELS)
@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:A single label was found")
def test_scores_agree_with_scikit_learn(pairs):
    from sklearn import metrics as oracle

    y_true, y_pred = np.array(pairs).T
    assert np.array_equal(confusion_matrix(y_true, y_pred, 5), oracle.confusion_matrix(y_true, y_pred, labels=range(5)))
    record = EvaluationRecord(CLASSES, y_true, y_pred)
    for name, expected in {
        "accuracy": oracle.accuracy_score(y_true, y_pred),
        "exact_match": oracle.accuracy_score(y_true, y_pred),
        "balanced_accuracy": oracle.balanced_accuracy_score(y_true, y_pred),
        "f1": oracle.f1_score(y_true, y_pred, average="macro"),
        "mIoU": oracle.jaccard_score(y_true, y_pred, average="macro"),
        "mIoU_all": oracle.jaccard_score(y_true, y_pred, average="macro", labels=range(5), zero_division=0),
    }.items():
        assert find(name).function(record) == pytest.approx(expected, abs=1e-12), name
    present = np.unique(y_true)
    recalls = oracle.recall_score(y_true, y_pred, average=None, labels=present)
    told = find("per_class_accuracy").function(record)
    assert told == pytest.approx(dict(zip([CLASSES[label] for label in present], recalls, strict=True)))
    # scikit-learn has no nan for an absent class here, so only classes that occur are compared
    ious = oracle.jaccard_score(y_true, y_pred, average=None, labels=range(5), zero_division=0)
    for c, ours in enumerate(find("per_class_IoU").function(record).values()):
        occurs = c in y_true or c in y_pred
        assert ours == pytest.approx(ious[c]) if occurs else math.isnan(ours)


def test_miou_of_label_pictures_agrees_with_torchmetrics():
    torch = pytest.importorskip("torch")
    oracle = pytest.importorskip("torchmetrics.functional.classification")
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 4, (3, 16, 20), dtype=np.uint8)  # class 4 occurs nowhere
    answer = np.where(generator.random(truth.shape) < 0.6, truth, generator.integers(0, 4, truth.shape)).astype(
        np.uint8
    )
    record = EvaluationRecord(CLASSES, counts=confusion_matrix(truth, answer, 5))
    arguments = torch.from_numpy(answer).long(), torch.from_numpy(truth).long(), 5
    assert find("mIoU").function(record) == pytest.approx(oracle.multiclass_jaccard_index(*arguments).item(), abs=1e-6)
    expected = oracle.multiclass_accuracy(*arguments, average="micro").item()
    assert find("accuracy").function(record) == pytest.approx(expected, abs=1e-6)


def test_the_two_conventions_of_miou_differ_by_absent_classes_only():
    y_true, y_pred = [0, 0, 1, 1], [0, 1, 1, 1]
    assert score("mIoU", y_true, y_pred) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert score("mIoU_all", y_true, y_pred) == pytest.approx((1 / 2 + 2 / 3) / 5)
    assert score("mIoU", y_true, y_pred, CLASSES[:2]) == score("mIoU_all", y_true, y_pred, CLASSES[:2])


def test_a_class_without_samples_has_no_accuracy_rather_than_zero():
    assert score("per_class_accuracy", [0, 0, 1], [0, 3, 1]) == {"road": 0.5, "car": 1.0}


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "f1", "mIoU", "mIoU_all", "exact_match"])
def test_without_samples_a_score_is_undefined(name):
    assert math.isnan(score(name, [], []))


def test_spellings_that_ianvs_users_mix_are_the_same_metric():
    assert find("Accuracy") is find("acc") is find("accuracy")


@given(LABELS)
def test_scores_from_counts_equal_scores_from_labels(pairs):
    y_true, y_pred = np.array(pairs).T
    counts = np.zeros((5, 5), dtype=np.int64)
    for truth, answer in pairs:
        counts[truth, answer] += 1
    assume(counts.any())
    for name in ("accuracy", "balanced_accuracy", "f1", "mIoU", "mIoU_all"):
        assert find(name).function(EvaluationRecord(CLASSES, counts=counts)) == score(name, y_true, y_pred)


def test_exact_match_compares_texts():
    assert score("exact_match", ["Paris", "Rome", "Oslo"], ["Paris", "rome", "Oslo"]) == pytest.approx(2 / 3)


def test_exact_match_needs_labels():
    counts = EvaluationRecord(CLASSES, counts=np.eye(5, dtype=np.int64))
    assert errors_of(find("exact_match").function, counts) == [("unfit-metric", "")]


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, object])
def test_whole_numbers_of_any_type_are_class_indices(dtype):
    assert confusion_matrix(np.array([0, 1], dtype), np.array([1, 1], dtype), 2).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("y_pred", "code"),
    [
        ([0, 5, 1], "invalid-result"),
        ([0, -1, -1], "invalid-result"),
        ([0, 1, 0.5], "invalid-result"),
        ([0, 1, math.nan], "invalid-result"),
        (["car", "car", "sky"], "invalid-result"),
        ([None, 1, 1], "invalid-result"),
        ([0, 1], "invalid-result"),
        ([[0.1, 0.9], [0.2, 0.8], [1, 0]], "invalid-result"),
    ],
    ids=["too large", "negative", "fraction", "nan", "text", "object", "too few", "probabilities"],
)
def test_predictions_that_are_no_class_indices_are_refused_with_the_first_of_them(y_pred, code):
    assert errors_of(confusion_matrix, [0, 1, 2], y_pred, 5) == [(code, "")]


def test_predictions_of_unequal_lengths_are_refused():
    with pytest.raises(InvalidValue) as caught:
        confusion_matrix([0, 1, 2], [[0, 1], [1], [2]], 5)
    assert located(raised(caught.value)) == [("invalid-result", "")]  # the message quotes numpy


def test_a_label_out_of_range_is_called_a_label():
    assert errors_of(confusion_matrix, [0, 255], [0, 0], 5) == [("invalid-result", "")]


def test_counts_are_int64_with_truth_in_rows():
    counts = confusion_matrix([0, 0, 1], [1, 1, 0], 3)
    assert counts.dtype == np.int64
    assert counts.tolist() == [[0, 2, 0], [1, 0, 0], [0, 0, 0]]


def test_a_linear_probe_is_scored_by_its_own_answers():
    y_true, y_pred = np.array([0, 1, 2, 1]), np.array([0, 0, 0, 0])
    record = EvaluationRecord(CLASSES, y_true, y_pred, probe=np.array([0, 1, 2, 2]))
    assert find("linear_probe_accuracy").function(record) == 0.75
    assert find("accuracy").function(record) == 0.25


def test_without_a_probe_its_accuracy_is_undefined():
    function = find("linear_probe_accuracy").function
    assert math.isnan(function(EvaluationRecord(CLASSES, np.array([0]), np.array([0]))))
    assert math.isnan(function(EvaluationRecord(CLASSES, counts=np.eye(5, dtype=np.int64))))
    assert math.isnan(function(EvaluationRecord(CLASSES, np.array([]), np.array([]), probe=np.array([]))))


def test_a_probe_that_did_not_answer_every_sample_is_refused():
    record = EvaluationRecord(CLASSES, np.zeros(3), np.zeros(3), probe=np.zeros(2))
    assert errors_of(find("linear_probe_accuracy").function, record) == [("unfit-metric", "")]
