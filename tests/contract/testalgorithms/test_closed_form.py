"""Methods that learn a head out of sums: against scikit-learn and their equations, sample by sample."""

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.ncm.basemodel import NCM
from ianvs.testalgorithms.ranpac.basemodel import RIDGES, RanPAC
from ianvs.testalgorithms.slda.basemodel import SLDA
from tests.unit.testalgorithms.exam_of_arrays import Data, Exam, digits, examine, teach

METHODS = {"ncm": NCM, "slda": SLDA, "ranpac": lambda **more: RanPAC(**{"width": 150, **more})}
every_closed_form = pytest.mark.parametrize("make", METHODS.values(), ids=METHODS)


def vectors(seed=0, classes=4, each=60, width=7):
    """(N, width) correlated features of classes whose means differ, in an order of no meaning; labels (N,)."""
    draw = np.random.default_rng(seed)
    mixing = draw.normal(size=(width, width))
    means = draw.normal(size=(classes, width)) * 1.5
    y = draw.permutation(np.repeat(np.arange(classes), each))
    x = draw.normal(size=(len(y), width)) @ mixing + means[y]
    return x.astype(np.float32), y.astype(np.int64)


def one_round(learner, x, y, classes=4):
    learner.train(Data(x, y), None, num_classes=classes, classes_seen=tuple(range(classes)), seed=3)
    return learner


def head(learner):
    return learner.network[-1].weight.detach().double().numpy(), learner.network[-1].bias.detach().double().numpy()


def answers(learner, x, classes=4):
    return learner.predict(Data(x), num_classes=classes, classes_seen=tuple(range(classes)), seed=3)


def test_ncm_is_the_nearest_centroid_of_scikit_learn():
    from sklearn.neighbors import NearestCentroid

    (x, y), (test, _) = vectors(), vectors(1)
    reference = NearestCentroid().fit(x.astype(float), y)
    np.testing.assert_array_equal(answers(one_round(NCM(), x, y), test), reference.predict(test.astype(float)))


@pytest.mark.parametrize("shrinkage", [0.0, 1e-4, 0.3, 1.0])
def test_slda_is_linear_discriminant_analysis_with_shrinkage_of_scikit_learn(shrinkage):
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    (x, y), (test, _) = vectors(), vectors(1)
    x, test = x.astype(float), test.astype(float)
    within = x - np.stack([x[y == c].mean(0) for c in range(4)])[y]
    scale = np.sqrt(np.trace(within.T @ within / len(x)) / x.shape[1])  # theirs shrinks towards the mean variance
    x, test = (x / scale).astype(np.float32), (test / scale).astype(np.float32)
    reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage, priors=[0.25] * 4).fit(x, y)
    learner = one_round(SLDA(shrinkage=shrinkage, exact=True), x, y)
    ours = test @ head(learner)[0].T + head(learner)[1]
    theirs = reference.decision_function(test) - np.log(0.25)
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)


def test_ranpac_is_ridge_regression_of_scikit_learn_on_the_projected_features():
    from sklearn.linear_model import Ridge

    x, y = vectors()
    learner = one_round(RanPAC(width=40), x, y)
    R = learner.network[0].body[0][-1].R.double().numpy()
    assert abs(R.mean()) < 0.2 and 0.9 < R.std() < 1.1
    h = np.maximum(x.astype(float) @ R, 0)
    ridge = float(RIDGES[learner.errors.argmin()])
    reference = Ridge(alpha=ridge, fit_intercept=False).fit(h, np.eye(4)[y])
    np.testing.assert_allclose(head(learner)[0], reference.coef_, rtol=1e-2, atol=1e-4)


@every_closed_form
def test_in_rounds_of_classes_the_end_is_that_of_one_round_with_everything(make):
    exam = digits()
    learner, at_once = make(), make()
    for k in range(1, 6):
        teach(learner, exam, k, seed=5)
    x, y = (np.concatenate(part) for part in zip(*exam.rounds, strict=True))
    at_once.train(Data(x, y), None, num_classes=10, classes_seen=tuple(range(10)), seed=5)
    torch.testing.assert_close(learner.sums, at_once.sums)
    torch.testing.assert_close(learner.moment, at_once.moment)
    if make is not METHODS["ranpac"]:  # which chooses lambda by round
        torch.testing.assert_close(learner.network[-1].weight, at_once.network[-1].weight, rtol=1e-3, atol=1e-4)


@every_closed_form
def test_it_hardly_forgets_and_beats_fine_tuning_by_far(make):
    R, *_ = examine(make(), digits(), seed=0)
    assert R[-1].mean() > 0.85  # fine-tuning ends at 0.2


@every_closed_form
def test_a_class_that_was_seen_without_a_single_label_is_never_answered(make):
    x, y = vectors()
    learner = make()
    learner.train(Data(x, np.where(y == 2, -1, y)), None, num_classes=4, classes_seen=(0, 1, 2, 3), seed=3)
    assert set(answers(learner, x)) <= {0, 1, 3}


@every_closed_form
@pytest.mark.parametrize("network", ["linear", "mlp", "resnet", "vit"])
def test_it_works_on_any_frozen_network_and_trains_nothing_of_it(make, network):
    draw = np.random.default_rng(0)
    x = draw.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8)
    y = np.arange(60) % 3
    x[y == 1] //= 2
    exam = Exam([(x, y)], [(x, y)], [(0, 1, 2)], 3)
    learner = make(network=network)
    learner.predict(Data(x), num_classes=3, seed=1)
    before = [value.clone() for value in learner.network[0].state_dict().values()]
    teach(learner, exam, 1, seed=1)
    assert all(map(torch.equal, before, learner.network[0].state_dict().values()))
    assert np.mean(learner.predict(Data(x), num_classes=3, classes_seen=(0, 1, 2), seed=1) == y) > 0.5
    assert not any(p.requires_grad for p in learner.network[0].parameters())
