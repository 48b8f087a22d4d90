"""Scores of several labels: the worked values, a plain restatement, and scikit-learn."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn import metrics as sk

from ianvs.config.spec import MetricSpec
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.running.scoring import pool_records
from ianvs.testenv.data_types.multilabel import average_precision as ranking
from ianvs.testenv.data_types.multilabel.multilabel_metrics import MULTILABEL
from tests.errors import errors_of

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "multilabel.json").read_text())
BY_NAME = {metric.name: metric for metric in MULTILABEL}
GOLDEN_NAMES = {"CF1_mean_of_class_f1": "CF1_macro", "CF1_of_means": "CF1"}

Case = tuple[NDArray[np.uint8], NDArray[np.float64]]


def score(
    metric: Metric,
    truth: Any,
    scores: Any,
    labels: tuple[int, ...] | None = None,
    seen: tuple[int, ...] | None = None,
    **options: Any,
) -> Any:
    truth, scores = np.array(truth, dtype=np.uint8), np.array(scores, dtype=np.float64)
    if options:
        assert metric.configure is not None
        metric = metric.configure(MetricSpec(metric.name, options=options))
    assert metric.function is not None
    names = tuple(f"c{c}" for c in range(truth.shape[1]))
    return metric.function(EvaluationRecord(names, truth, scores, labels=labels, seen=seen))


@pytest.mark.parametrize("name", GOLDEN["cases"])
def test_worked_values(name: str) -> None:
    case = GOLDEN["cases"][name]
    expected = dict(case["expected"])
    truth, scores = np.array(case["truth"], dtype=np.uint8), np.array(case["scores"])
    for key, rule in (("AP_per_class", "groups"), ("KRT_AP_per_class", "krt")):
        wanted = [math.nan if value is None else value for value in expected.pop(key)]
        found = ranking.average_precisions(truth, scores, rule)  # type: ignore[arg-type]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
    found = {
        "mAP_voc07": score(BY_NAME["mAP"], truth, scores, rule="voc07"),
        "KRT_mAP": score(BY_NAME["mAP"], truth, scores, rule="krt"),
    }
    for key in expected.keys() - found.keys():
        options = {} if key.startswith("mAP") else {"threshold": case["threshold"]}
        found[key] = score(BY_NAME[GOLDEN_NAMES.get(key, key)], truth, scores, **options)
    assert found == pytest.approx(expected, rel=0, abs=1e-9)


def test_worked_values_of_classes_that_arrive_over_time() -> None:
    case = GOLDEN["class_incremental"]
    truth = np.array(case["truth"], dtype=np.uint8)
    answers = [np.array(scores) for scores in case["scores_after_round"]]
    classes = np.array([score(BY_NAME["mAP"], truth, s, tuple(group)) for s in answers for group in case["groups"]])
    np.testing.assert_allclose(classes.reshape(3, 3), case["R_classes"], rtol=0, atol=1e-9)
    kept = [truth[:, group].any(axis=1) for group in case["groups"]]
    pictures = [
        score(BY_NAME["mAP"], truth[rows], s[rows], tuple(group))
        for s in answers
        for rows, group in zip(kept, case["groups"], strict=True)
    ]
    np.testing.assert_allclose(np.reshape(pictures, (3, 3)), case["R_pictures"], rtol=0, atol=1e-9)
    taught = [tuple(c for group in case["groups"][: k + 1] for c in group) for k in range(3)]
    seen = [score(BY_NAME["mAP_seen"], truth, s, seen=classes) for s, classes in zip(answers, taught, strict=True)]
    np.testing.assert_allclose(seen, case["seen_mAP"], rtol=0, atol=1e-9)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few distinct scores, so that there are ties, some of them at thresholds."""
    shape = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    truth = draw(arrays(np.uint8, shape, elements=st.integers(0, 1)))
    return truth, draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])))


@given(cases())
def test_scikit_learn_says_the_same(case: Case) -> None:
    truth, scores = case
    answered = scores > 0.5
    present = truth.any(axis=0)
    if present.any():
        expected = sk.average_precision_score(truth[:, present], scores[:, present], average=None)
        np.testing.assert_allclose(ranking.average_precisions(truth, scores)[present], expected, atol=1e-12)
        micro = sk.average_precision_score(truth.ravel(), scores.ravel())
        assert ranking.micro_average_precision(truth, scores) == pytest.approx(micro)
    assert np.isnan(ranking.average_precisions(truth, scores)[~present]).all()
    if truth.shape[1] == 1:  # which scikit-learn takes for one label a sample
        return
    zero, one = {"zero_division": 0.0}, {"average": "samples", "zero_division": 1.0}
    expected = {
        "CP": sk.precision_score(truth, answered, average="macro", **zero),
        "CR": sk.recall_score(truth, answered, average="macro", **zero),
        "CF1_macro": sk.f1_score(truth, answered, average="macro", **zero),
        "OP": sk.precision_score(truth, answered, average="micro", **zero),
        "OR": sk.recall_score(truth, answered, average="micro", **zero),
        "OF1": sk.f1_score(truth, answered, average="micro", **zero),
        "example_f1": sk.f1_score(truth, answered, **one),
        "example_jaccard": sk.jaccard_score(truth, answered, **one),
        "subset_accuracy": sk.accuracy_score(truth, answered),
        "hamming_loss": sk.hamming_loss(truth, answered),
    }
    assert {name: score(BY_NAME[name], truth, scores) for name in expected} == pytest.approx(expected)


def naive(truth: NDArray[np.uint8], scores: NDArray[np.float64]) -> dict[str, float]:
    """In sets and fractions, threshold by threshold, from the definitions."""
    N, C = truth.shape
    true = [{c for c in range(C) if truth[n, c]} for n in range(N)]
    said = [{c for c in range(C) if scores[n, c] > 0.5} for n in range(N)]
    sums: dict[str, list[Fraction]] = {"mAP": [], "voc07": [], "CF1_macro": [], "pw_jaccard": []}
    for c in range(C):
        positives = int(truth[:, c].sum())
        steps = sorted({s for s in scores[:, c].tolist() if s > -math.inf}, reverse=True)
        points = [(Fraction(0), Fraction(0))]  # recall, precision
        for t in steps:
            chosen = [n for n in range(N) if scores[n, c] >= t]
            right = sum(truth[n, c] for n in chosen)
            points.append((Fraction(int(right), max(positives, 1)), Fraction(int(right), len(chosen))))
        ranked = [n for n in sorted(range(N), key=lambda n: -scores[n, c]) if scores[n, c] > -math.inf]
        alone = [(sum(int(truth[n, c]) for n in ranked[: i + 1]), i + 1) for i in range(len(ranked))]
        if positives:
            sums["mAP"].append(sum(((b[0] - a[0]) * b[1] for a, b in pairwise(points)), Fraction(0)))
            best = [
                max(
                    (Fraction(r, i) for r, i in alone if Fraction(r, positives) >= Fraction(t, 10)), default=Fraction(0)
                )
                for t in range(11)
            ]
            sums["voc07"].append(sum(best, Fraction(0)) / 11)
        both = sum(c in y and c in p for y, p in zip(true, said, strict=True))
        either = sum((c in y) + (c in p) for y, p in zip(true, said, strict=True))
        sums["CF1_macro"].append(Fraction(2 * both, max(either, 1)))
    for y, p in zip(true, said, strict=True):
        common = len(y & p)
        sums["pw_jaccard"].append(Fraction(common, len(y | p)) * Fraction(common, len(p)) if p else Fraction(0))
    return {name: float(sum(values) / len(values)) if values else math.nan for name, values in sums.items()}


@given(cases(), st.floats(0, 1))
def test_a_plain_restatement_says_the_same_also_where_something_is_never_answered(case: Case, share: float) -> None:
    truth, scores = case
    scores = np.where(np.random.default_rng(0).random(scores.shape) < share, -np.inf, scores)
    found = {name: score(BY_NAME[name], truth, scores) for name in ("mAP", "CF1_macro", "pw_jaccard")}
    found["voc07"] = score(BY_NAME["mAP"], truth, scores, rule="voc07")
    assert found == pytest.approx(naive(truth, scores), rel=0, abs=1e-9, nan_ok=True)


def test_a_class_that_is_never_answered_has_an_average_precision_of_0() -> None:
    truth, never = np.array([[1], [0], [1]], dtype=np.uint8), np.full((3, 1), -np.inf)
    for rule in ("groups", "voc07"):
        assert score(BY_NAME["mAP"], truth, never, rule=rule) == 0
    assert score(BY_NAME["mAP"], truth, np.zeros((3, 1))) == pytest.approx(2 / 3)  # answered with equal scores


def test_a_score_at_the_threshold_is_no_answer_and_zero_is_that_of_logits() -> None:
    truth, logits = [[1, 1]], [[0.5, 0.3]]
    assert score(BY_NAME["OR"], truth, logits) == 0
    assert score(BY_NAME["OR"], truth, logits, threshold=0.4) == 0.5
    assert score(BY_NAME["OR"], truth, logits, threshold="zero") == 1


def test_an_unknown_option_of_a_metric_is_refused_with_those_that_there_are() -> None:
    assert errors_of(score, BY_NAME["CF1"], [[1]], [[1]], treshold=0.8) == [("unknown-option", "")]
    assert errors_of(score, BY_NAME["mAP"], [[1]], [[1]], rule="coco") == [("invalid-option", "")]


def test_options_change_neither_direction_nor_form_of_a_metric() -> None:
    for name, option in (("hamming_loss", {"threshold": 0.8}), ("AP_by_class", {"rule": "krt"})):
        configure = BY_NAME[name].configure
        assert configure is not None
        found = configure(MetricSpec(name, options=option))
        assert (found.higher_is_better, found.mapping) == (name != "hamming_loss", name == "AP_by_class")


def test_scores_are_of_the_class_list_alone() -> None:
    truth, scores = [[1, 0, 1], [0, 1, 1]], [[0.9, 0.8, 0.1], [0.1, 0.2, 0.9]]
    assert score(BY_NAME["mAP"], truth, scores, (0,)) == 1
    assert score(BY_NAME["AP_by_class"], truth, scores, (1, 2)) == pytest.approx({"c1": 0.5, "c2": 1})
    assert score(BY_NAME["CP"], truth, scores, (2, 0)) == 1
    assert score(BY_NAME["hamming_loss"], truth, scores, (1,)) == 1


def test_pw_jaccard_by_hand_with_truths_limited_to_labels_seen() -> None:
    """Labels: animal, dog, husky, thing. (4/9 + 4/9 + 1/8) / 3 = 73/216, and without "husky" other unions."""
    truth = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]], dtype=np.uint8)
    answered = np.array([[1, 1, 1, 0], [1, 1, 0, 1], [1, 0, 0, 1]], dtype=np.uint8)
    similarity = BY_NAME["pw_jaccard"]
    assert score(similarity, truth, answered) == pytest.approx(73 / 216, rel=0, abs=1e-12)  # .337963
    seen = score(similarity, truth, answered, seen=(0, 1, 3))
    assert seen == pytest.approx((4 / 9 + 4 / 9 + 1 / 6) / 3, rel=0, abs=1e-12)
    assert score(similarity, truth, np.zeros_like(truth)) == 0


def test_seen_classes_are_scored_on_samples_that_contain_one_where_it_is_said() -> None:
    truth, scores = [[1, 0], [0, 1], [0, 1], [1, 1]], [[0.9, 0], [0.8, 0], [0.7, 0], [0.6, 0]]
    of_all = score(BY_NAME["mAP_seen"], truth, scores, seen=(0,))
    assert of_all == pytest.approx((1 + 2 / 4) / 2)
    assert score(BY_NAME["mAP_seen"], truth, scores, seen=(0,), samples="containing") == 1
    assert math.isnan(score(BY_NAME["mAP_seen"], truth, scores, seen=()))  # before the first round


def test_frequent_and_rare_classes_are_those_that_are_named() -> None:
    """The random case, split by how often a class is true; only what was taught counts."""
    case = GOLDEN["cases"]["random_60x8"]
    truth, scores, by_class = case["truth"], case["scores"], case["expected"]["AP_per_class"]
    often = np.argsort(-np.array(truth).sum(0), kind="stable")
    for name, which in (("majority", often[:2]), ("moderate", often[2:5]), ("minority", often[5:])):
        metric, listed = BY_NAME[f"mAP_{name}"], [f"c{c}" for c in which]
        found = score(metric, truth, scores, classes=listed)
        assert found == pytest.approx(np.mean([by_class[c] for c in which]), rel=0, abs=1e-9)
        first = (int(which[0]),)
        assert score(metric, truth, scores, seen=first, classes=listed) == pytest.approx(by_class[which[0]], abs=1e-9)
        assert math.isnan(score(metric, truth, scores, seen=(), classes=listed))
        assert errors_of(score, metric, truth, scores, classes=["cc1"]) == [("unfit-metric", "")]
        assert errors_of(score, metric, truth, scores, rule="krt") == [("missing-option", "")]


def test_samples_of_several_test_sets_are_pooled_once() -> None:
    truth = np.array([[1, 0], [0, 1], [1, 1]], dtype=np.uint8)
    scores = np.array([[0.1, 0.9], [0.5, 0.1], [0.9, 0.5]])
    both = [np.array([0, 2]), np.array([1, 2])]
    row = [EvaluationRecord(("a", "b"), truth[at], scores[at], labels=(j,), positions=at) for j, at in enumerate(both)]
    found = pool_records(row)
    assert found is not None
    assert (np.asarray(found.y_true).tolist(), np.asarray(found.y_pred).tolist()) == (truth.tolist(), scores.tolist())


def test_without_a_sample_every_score_is_nan() -> None:
    nothing = np.zeros((0, 3))
    values = {name: score(metric, nothing, nothing) for name, metric in BY_NAME.items() if not metric.mapping}
    assert values == pytest.approx(dict.fromkeys(values, math.nan), nan_ok=True)
