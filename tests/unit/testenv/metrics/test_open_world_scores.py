"""Detection of what was not taught, and routes: against scikit-learn, against naive counts, and by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.types import ScoreMatrix
from ianvs.exam.metrics import EvaluationRecord, find

SAMPLES = st.lists(st.tuples(st.booleans(), st.integers(-4, 4)), min_size=1, max_size=60)


def score(name, unseen=None, extras=None, y_true=None, y_pred=None):
    given = {name: np.array(values, float) for name, values in (extras or {}).items()}
    labels = [None if y is None else np.array(y) for y in (y_true, y_pred)]
    unseen = None if unseen is None else np.array(unseen)
    return find(name).function(EvaluationRecord(("a", "b", "c"), *labels, extras=given, unseen=unseen))


def naive_fpr95(seen, unseen):
    """The lowest of all thresholds that lets 95 % of the seen pass, tried one by one."""
    for threshold in sorted(set(seen) | set(unseen)):
        if 100 * sum(s <= threshold for s in seen) >= 95 * len(seen):
            return sum(u <= threshold for u in unseen) / len(unseen)
    raise AssertionError


@given(SAMPLES)
def test_auroc_is_that_of_scikit_learn_and_fpr95_that_of_trying_every_threshold(samples):
    from sklearn.metrics import roc_auc_score

    unseen, scores = zip(*samples, strict=True)
    if all(unseen) or not any(unseen):
        assert math.isnan(score("AUROC", unseen, {"unseen": scores}))
        assert math.isnan(score("FPR95", unseen, {"unseen": scores}))
        return
    assert score("AUROC", unseen, {"unseen": scores}) == pytest.approx(roc_auc_score(unseen, scores), abs=1e-12)
    parts = [[a for u, a in samples if u is side] for side in (False, True)]
    assert score("FPR95", unseen, {"unseen": scores}) == pytest.approx(naive_fpr95(*parts), abs=1e-12)


def test_open_set_accuracy_by_hand():
    unseen, truth, said = [False, False, False, True, True], [0, 1, 1, 2, 2], [0, 1, -1, -1, 0]
    given = {"y_true": truth, "y_pred": said}
    assert score("open_set_accuracy", unseen, **given) == 3 / 5
    assert score("open_set_balanced_accuracy", unseen, **given) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert score("accuracy", unseen, **given) == 2 / 5  # "unseen" is no class
    assert score("f1", unseen, **given) == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert score("AUROC", unseen, **given) == pytest.approx((2.5 + 1) / 6)  # from the answers alone
    rejecting = [-1] * 5
    assert score("open_set_balanced_accuracy", unseen, y_true=truth, y_pred=rejecting) == 0.5
    for name in ("AUROC", "FPR95", "open_set_accuracy"):
        assert math.isnan(score(name, None, {"unseen": [0.0] * 5}, **given))  # nothing is unseen in other exams


def test_routes_by_hand():
    extras = {"route": [0, 0, 0, 1], "latency_ms": [2, 2, 2, 48], "uploaded_bytes": [0, 0, 0, 256]}
    given = {"extras": extras, "y_true": [0, 1, 2, 2], "y_pred": [0, 1, 1, 2]}
    assert score("edge_share", **given) == 3 / 4
    assert score("edge_accuracy", **given) == 2 / 3
    assert score("cloud_accuracy", **given) == 1
    assert score("latency_ms", **given) == 13.5
    assert score("latency_p95_ms", **given) == 48
    assert score("uploaded_bytes", **given) == 64
    assert math.isnan(score("downloaded_bytes", **given))
    assert math.isnan(score("edge_share", y_true=[0], y_pred=[0]))


def test_forget_rate_is_what_ianvs_computes_from_samples_that_are_as_good_as_their_test_set():
    rng = np.random.default_rng(0)
    for rounds in (1, 2, 5):
        R = rng.random((rounds, rounds))
        samples = [[R[k, j] for j in range(k + 1) for _ in range(3)] for k in range(rounds)]  # three a test set
        rates = []
        for k in range(rounds):
            lost = [max(0, *(a[i] - now for a in samples[:k] if i < len(a)), 0) for i, now in enumerate(samples[k])]
            rates.append(sum(lost) / len(lost) if k else 0.0)
        assert find("forget_rate").function(ScoreMatrix.from_rounds(R)) == pytest.approx(np.mean(rates))
        assert find("task_avg_acc").function(ScoreMatrix.from_rounds(R)) == pytest.approx(R[-1].mean())
