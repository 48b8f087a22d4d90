"""Methods for boxes, in two rounds of a small exam."""

import copy

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.detection import DetectionLearner, box_iou
from ianvs.testalgorithms.detection.finetune.basemodel import DetectionFinetune
from ianvs.testalgorithms.detection.joint.basemodel import DetectionJoint
from ianvs.testalgorithms.detection.lwf.basemodel import DetectionLwF
from ianvs.testalgorithms.detection.pseudo_labels.basemodel import DetectionPseudoLabels
from ianvs.testalgorithms.detection.replay.basemodel import DetectionReplay
from tests.errors import errors_of
from tests.unit.testalgorithms.exam_of_shapes import ROUNDS, SHORT, Scenes, answers, context, scenes, targets_of, teach

METHODS = (DetectionFinetune, DetectionReplay, DetectionLwF, DetectionPseudoLabels, DetectionJoint)


def same(some, others):
    return all(np.array_equal(one[key], other[key]) for one, other in zip(some, others, strict=True) for key in one)


@pytest.mark.parametrize("method", METHODS)
def test_answers_are_boxes_scores_and_labels_of_seen_classes(method):
    learner = teach(method(**SHORT), 1)
    said = answers(learner, 1)
    assert len(said) == 12
    for one in said:
        count = len(one["scores"])
        assert one["boxes"].shape == (count, 4)
        assert (one["boxes"].dtype, one["labels"].dtype) == (np.float64, np.int64)
        assert np.isfinite(one["boxes"]).all() and (one["boxes"][:, 2:] >= one["boxes"][:, :2]).all()
        assert set(one["labels"].tolist()) <= set(ROUNDS[0])
    assert {c for one in answers(teach(learner, 2), 2) for c in one["labels"].tolist()} <= {0, 2, 4, 1}


def test_an_untrained_detector_answers_all_classes():
    assert {
        c for one in DetectionFinetune(**SHORT).predict(Scenes(scenes(1).x), num_classes=8) for c in one["labels"]
    } > {0, 1}


@pytest.mark.slow
def test_finetuning_finds_shapes_that_it_was_shown():
    learner = DetectionFinetune(**{**SHORT, "epochs": 12, "widths": (12, 16)})
    data = scenes(1, 240)
    learner.train(data, None, **context(1))
    shown = scenes(1, 60)
    found = 0
    for said, true in zip(learner.predict(Scenes(shown.x), **context(1)), shown.y, strict=True):
        best = said["boxes"][said["scores"] > 0.3]
        overlap = box_iou(torch.from_numpy(true["boxes"]), torch.from_numpy(best).reshape(-1, 4))
        found += int((overlap > 0.5).any(1).sum())
    assert found > 0.5 * sum(len(true["labels"]) for true in shown.y)


def test_objects_of_old_classes_are_background_to_finetuning():
    """Their heatmaps are taught that nothing is there."""
    learner = teach(DetectionFinetune(**SHORT), 1)
    before = learner.network.head[-1].weight.detach().clone()
    teach(learner, 2)
    changed = (learner.network.head[-1].weight - before).abs().flatten(1).sum(1) > 0
    assert changed[:8].tolist() == [True, True, True, False, True, False, False, False]


def test_replayed_pictures_keep_the_boxes_they_came_with():
    learner = teach(DetectionReplay(capacity=5, **SHORT), 1)
    rows = learner.tensors(scenes(1))[1]
    assert len(learner.memory) == 5
    for kept in learner.memory.y:
        assert (rows == kept).all((1, 2)).any()
    learner.before_round(learner_data(learner, 2))
    x, y = learner.extend(torch.zeros(3, 3, 32, 32), torch.zeros(3, 16, 5))
    assert (len(x), len(y)) == (6, 6)
    assert set(y[3:][..., 4].unique().tolist()) <= {-1, *ROUNDS[0]}


def learner_data(learner, k):
    """The RoundData that its hooks get."""
    kept = {}
    learner = copy.copy(learner)
    learner._fit = lambda data, progress: kept.update(data=data)
    learner.before_round, learner.after_round = lambda data: None, lambda data: None
    learner.training_data = lambda data: data
    learner.train(scenes(k), None, **context(k))
    return kept["data"]


def test_lwf_distils_heatmaps_of_old_classes_and_boxes_where_they_are_high():
    learner = teach(DetectionLwF(alpha=0.7, **SHORT), 1)
    data = learner_data(learner, 2)
    learner.before_round(data)
    with torch.no_grad():
        for p in learner.network.parameters():
            p.add_(0.01 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1)))
    learner.network.eval()
    batch = learner.batch(data, data.prepare(data.x[:4]), data.y[:4])
    said, told = batch.outputs, learner.teacher(batch.x)
    squares = distances = weights = 0.0
    for z, z_old in zip(said.detach().numpy(), told.numpy(), strict=True):
        for row in range(z.shape[1]):
            for column in range(z.shape[2]):
                p, p_old = (1 / (1 + np.exp(-each[list(ROUNDS[0]), row, column].astype(float))) for each in (z, z_old))
                squares += ((p - p_old) ** 2).sum()
                distances += p_old.max() * abs(z[8:, row, column] - z_old[8:, row, column]).sum()
                weights += p_old.max()
    expected = (squares + distances) / max(weights, 1)
    assert learner.distillation(batch).item() == pytest.approx(expected, rel=1e-4)
    new = learner.network.loss(said, batch.y, torch.tensor(sorted(ROUNDS[1])))
    assert learner.loss(batch).item() == pytest.approx(new.item() + 0.7 * expected, rel=1e-4)


def test_lwf_has_no_teacher_before_anything_is_known():
    learner = DetectionLwF(**SHORT)
    data = learner_data(learner, 1)
    learner._ready(data.x, 8, "cpu", 0)
    learner.before_round(data)
    assert learner.teacher is None


def naive_pseudo_labels(rows, found, threshold, overlap, room):
    """Sets of (x1, y1, x2, y2, label) of a picture."""
    true = [row.tolist() for row in rows if row[4] >= 0]
    sure = sorted((a for a in found.tolist() if a[4] >= threshold), key=lambda a: -a[4])
    kept = []
    for *box, _, label in sure:
        if all(box_iou(torch.tensor([box]), torch.tensor([t[:4]])).item() < overlap for t in true):
            kept.append([*box, label])
    return {tuple(row) for row in (true + kept)[:room]}


def test_pseudo_labels_are_sure_answers_away_from_true_boxes():
    draws = torch.Generator().manual_seed(2)
    learner = DetectionPseudoLabels(threshold=0.3, overlap=0.4, **SHORT)
    corners = 20 * torch.rand(6, 9, 2, generator=draws)
    boxes = torch.cat([corners, corners + 4 + 12 * torch.rand(6, 9, 2, generator=draws)], -1)
    rows = torch.cat([boxes[:, :4], torch.tensor([1.0, 4, -1, -1]).expand(6, 4)[..., None]], -1)
    found = torch.cat([boxes[:, 3:], torch.rand(6, 6, 1, generator=draws), torch.full((6, 6, 1), 2.0)], -1)
    found[0, 0, :4] = rows[0, 0, :4] + 0.5  # what the truth says already
    found[0, 0, 4] = 0.9
    found[1, :, 4] = 0.8  # more than there is room for
    found[2, :, 4] = -torch.inf
    completed = learner.completed(rows, found)
    assert completed.shape == rows.shape
    for one, own, said in zip(completed, rows, found, strict=True):
        got = {tuple(row.tolist()) for row in one if row[4] >= 0}
        assert got == naive_pseudo_labels(own, said, 0.3, 0.4, 4)


def test_pseudo_labels_are_of_old_classes_alone():
    learner = teach(DetectionPseudoLabels(threshold=0.0, **SHORT), 1)
    data = learner_data(learner, 2)
    labels = set(learner.training_data(data).y[..., 4].unique().tolist())
    assert labels - {-1.0} > set(ROUNDS[1])
    assert labels <= {-1.0, *ROUNDS[0], *ROUNDS[1]}
    assert learner.network.training
    learner.known_classes = [4]  # taught again: its labels are given
    assert learner.training_data(data) is data


def test_joint_training_depends_on_no_earlier_round():
    learner = teach(teach(DetectionJoint(**SHORT), 1), 2)
    assert same(answers(learner, 2), answers(teach(DetectionJoint(**SHORT), 2), 2))


def test_pictures_without_a_box_are_learned_from():
    data = scenes(1)
    none = targets_of(*({"boxes": np.zeros((0, 4)), "labels": np.zeros(0, np.int64)} for _ in data.y))
    learner = DetectionFinetune(**SHORT)
    learner.train(Scenes(data.x, none, data.ids), None, **context(1))
    assert len(answers(learner, 1)) == 12


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"network": "centrenet"}, "invalid-choice"),
        ({"augment": "crop"}, "conflicting-keys"),
        ({"picture_size": 32}, "conflicting-keys"),
    ],
)
def test_what_a_detector_can_not_do_is_refused(how, code):
    assert errors_of(DetectionFinetune, **how) == [(code, "")]


def test_an_exam_without_boxes_is_refused():
    assert errors_of(
        lambda: DetectionLearner().check_exam(kind="classification", shape=(32, 32, 3), num_classes=8)
    ) == [("refused-arguments", "")]
    DetectionLearner().check_exam(kind="detection", shape=(32, 32, 3), num_classes=8)


def test_lwf_refuses_a_network_without_heatmaps():
    assert errors_of(DetectionLwF, network="ssdlite320_mobilenet_v3_large") == [("refused-arguments", "")]
