"""Methods for several labels, in two rounds of a small exam."""

import math

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.multilabel import MultilabelLearner
from ianvs.testalgorithms.multilabel.finetune.basemodel import MultilabelFinetune
from ianvs.testalgorithms.multilabel.joint.basemodel import MultilabelJoint
from ianvs.testalgorithms.multilabel.label_memories import closest_to
from ianvs.testalgorithms.multilabel.ocdm.basemodel import MultilabelOCDM
from ianvs.testalgorithms.multilabel.prs.basemodel import MultilabelPRS
from ianvs.testalgorithms.multilabel.pseudo_labels.basemodel import MultilabelPseudoLabels
from ianvs.testalgorithms.multilabel.replay.basemodel import MultilabelReplay
from tests.errors import errors_of
from tests.unit.testalgorithms.exam_of_shapes import ROUNDS, SHORT, Scenes, answers, context, scenes, teach

REPLAYS = (MultilabelReplay, MultilabelPRS, MultilabelOCDM)
METHODS = (MultilabelFinetune, MultilabelPseudoLabels, MultilabelJoint, *REPLAYS)


def made(method, **how):
    return method(**SHORT, **({"capacity": 6} if method in REPLAYS else {}), **how)


@pytest.mark.parametrize("method", METHODS)
def test_answers_are_probabilities_and_never_of_unseen_classes(method):
    said = answers(teach(made(method), 1, several=True), 1)
    assert said.shape == (12, 8)
    seen = list(ROUNDS[0])
    assert ((said[:, seen] > 0) & (said[:, seen] < 1)).all()
    assert (np.delete(said, seen, axis=1) == -np.inf).all()


def test_the_loss_is_the_cross_entropy_of_each_seen_class():
    learner = MultilabelFinetune(**SHORT)
    losses = []
    learner.after_step = lambda *given: None
    plain = learner.loss
    learner.loss = lambda batch: losses.append((batch, plain(batch))) or losses[-1][1]
    teach(learner, 1, several=True)
    batch, loss = losses[0]
    total = 0.0
    for z, y in zip(batch.outputs.tolist(), batch.y.tolist(), strict=True):
        for c in ROUNDS[0]:
            p = 1 / (1 + math.exp(-z[c]))
            total -= math.log(p) if y[c] else math.log(1 - p)
    assert loss.item() == pytest.approx(total / (2 * len(batch.y)), rel=1e-5)


def test_the_asymmetric_loss_can_take_its_place():
    plain, other = (teach(MultilabelFinetune(**SHORT, criterion=name), 1, several=True) for name in ("bce", "asl"))
    assert not np.array_equal(answers(plain, 1), answers(other, 1))


def test_old_labels_are_absent_to_finetuning():
    """Where a round's samples hold an old class, its probability falls, since no label says so any more."""
    learner = teach(MultilabelFinetune(**{**SHORT, "epochs": 15}), 1, several=True)
    before = answers(learner, 1)[:, list(ROUNDS[0])].mean()
    assert answers(teach(learner, 2, several=True), 2)[:, list(ROUNDS[0])].mean() < 0.6 * before


def test_pseudo_labels_restore_old_classes_where_the_old_network_is_sure():
    learner = teach(MultilabelPseudoLabels(**SHORT, threshold=0.45), 1, several=True)
    kept = {}
    learner._fit = lambda data, progress: kept.update(y=data.y)
    p = learner.predict(Scenes(scenes(2).x), **{**context(2), "classes_seen": ()})
    teach(learner, 2, several=True)
    expected = scenes(2, several=True).y.copy()
    for row, probabilities in zip(expected, p, strict=True):
        for c in ROUNDS[0]:
            row[c] = probabilities[c] >= 0.45
    np.testing.assert_array_equal(kept["y"].numpy(), expected)
    assert 0 < expected[:, list(ROUNDS[0])].sum() < expected[:, list(ROUNDS[0])].size


def test_joint_training_depends_on_no_earlier_round():
    learner = teach(teach(MultilabelJoint(**SHORT), 1, several=True), 2, several=True)
    np.testing.assert_array_equal(answers(learner, 2), answers(teach(MultilabelJoint(**SHORT), 2, several=True), 2))


@pytest.mark.parametrize("method", REPLAYS)
def test_replay_joins_old_samples_with_their_labels(method):
    learner = teach(made(method, fill="after_round"), 1, several=True)
    data = scenes(1, several=True)
    pictures = {picture.tobytes(): row.tolist() for picture, row in zip(data.x, data.y, strict=True)}
    assert len(learner.memory) == 6
    for picture, row in zip(learner.memory.x, learner.memory.y, strict=True):
        assert pictures[picture.permute(1, 2, 0).numpy().tobytes()] == row.tolist()
    x, y = learner.extend(torch.zeros(3, 3, 32, 32), torch.zeros(3, 8, dtype=torch.uint8))
    assert (len(x), len(y)) == (6, 6)
    assert y[3:].sum() > 0


def test_ocdm_keeps_what_brings_labels_closest_to_equal_shares():
    learner = teach(made(MultilabelOCDM, fill="after_round"), 1, several=True)
    data = scenes(1, several=True)
    target = torch.zeros(8, dtype=torch.float64)
    target[list(ROUNDS[0])] = 0.5
    expected = closest_to(target, torch.from_numpy(data.y), 6)
    np.testing.assert_array_equal(learner.memory.y, data.y[expected])


def test_an_exam_of_one_label_is_refused():
    assert errors_of(
        lambda: MultilabelLearner().check_exam(kind="classification", shape=(32, 32, 3), num_classes=8)
    ) == [("refused-arguments", "")]
    MultilabelLearner().check_exam(kind="multilabel", shape=(32, 32, 3), num_classes=8)


@pytest.mark.parametrize(
    ("method", "how"), [(MultilabelFinetune, {"criterion": "bec"}), (MultilabelReplay, {"selection": "herding"})]
)
def test_options_that_several_labels_do_not_have_are_refused(method, how):
    assert errors_of(method, **how) == [("invalid-choice", "")]
