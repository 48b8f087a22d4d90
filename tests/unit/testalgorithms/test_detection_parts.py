"""What the methods for boxes share: targets as tensors, and the network without anchors."""

import math

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.detection import box_iou, rows_of
from ianvs.testalgorithms.detection.centernet import STRIDE, CenterNet
from ianvs.testalgorithms.detection.targets import mappings
from tests.errors import errors_of

NONE = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, np.int64)}


def target(*rows):
    """x1 y1 x2 y2 label each."""
    array = np.array(rows, dtype=float)
    return {"boxes": array[:, :4], "labels": array[:, 4].astype(np.int64)}


TARGETS = [target([4, 6, 16, 14, 1], [9, 9, 20, 29, 0]), NONE, target([1, 2, 10, 11, 2], [20.5, 18, 31.5, 30, 2])]


def test_targets_become_rows_and_the_rest_is_no_object():
    rows = rows_of(TARGETS, 3)
    assert (rows.shape, rows.dtype) == ((3, 3, 5), torch.float32)
    assert rows[..., 4].tolist() == [[1, 0, -1], [-1, -1, -1], [2, 2, -1]]
    np.testing.assert_array_equal(rows[2, :2, :4], TARGETS[2]["boxes"])


def test_crowds_are_left_out_of_the_rows():
    rows = rows_of([{**TARGETS[0], "iscrowd": np.array([1, 0], np.uint8)}], 1)
    assert rows[0, 0].tolist() == [9, 9, 20, 29, 0]


def test_a_picture_with_more_boxes_than_rows_is_an_error_with_the_remedy():
    assert errors_of(rows_of, TARGETS, 1) == [("refused-arguments", "")]


def test_the_iou_of_boxes_is_common_over_united_area():
    a, b = torch.rand(5, 4, dtype=torch.float64), torch.rand(7, 4, dtype=torch.float64)
    for boxes in (a, b):
        boxes[:, 2:] += boxes[:, :2]
    found = box_iou(a, b)
    for i, one in enumerate(a.tolist()):
        for j, other in enumerate(b.tolist()):
            wide = min(one[2], other[2]) - max(one[0], other[0])
            high = min(one[3], other[3]) - max(one[1], other[1])
            common = max(wide, 0) * max(high, 0)
            areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
            assert found[i, j].item() == pytest.approx(common / (areas - common), abs=1e-12)
    assert box_iou(torch.zeros(1, 4), torch.zeros(1, 4)).item() == 0


def test_answers_become_mappings_without_what_is_none():
    found = torch.tensor([[[1.0, 2, 3, 4, 0.5, 7], [0, 0, 0, 0, -math.inf, 0]], [[0, 0, 0, 0, -math.inf, 0]] * 2])
    one, none = mappings(found)
    assert (one["boxes"].tolist(), one["scores"].tolist(), one["labels"].tolist()) == ([[1, 2, 3, 4]], [0.5], [7])
    assert (none["boxes"].shape, none["scores"].shape, none["labels"].dtype) == ((0, 4), (0,), np.int64)


def network():
    torch.manual_seed(3)
    return CenterNet(3, 4, (4, 6)).double()


def naive_heatmaps(height, width):
    heat = np.zeros((3, 4, height, width))
    for i, one in enumerate(TARGETS):
        for (x1, y1, x2, y2), label in zip(one["boxes"].tolist(), one["labels"].tolist(), strict=True):
            column, row = int((x1 + x2) / 2 // STRIDE), int((y1 + y2) / 2 // STRIDE)
            for v in range(height):
                for u in range(width):
                    away = ((u - column) / ((x2 - x1) / STRIDE / 6)) ** 2 + ((v - row) / ((y2 - y1) / STRIDE / 6)) ** 2
                    heat[i, label, v, u] = max(heat[i, label, v, u], math.exp(-away / 2))
    return heat


def naive_loss(maps, classes):
    """Eq. 1 of "Objects as Points" with alpha 2 and beta 4, and the distance of sizes and centres in centre cells."""
    heat, total = naive_heatmaps(*maps.shape[2:]), 0.0
    for i in range(3):
        for c in classes:
            for wanted, z in zip(heat[i, c].ravel(), maps[i, c].ravel().tolist(), strict=True):
                p = 1 / (1 + math.exp(-z))
                total -= (1 - p) ** 2 * math.log(p) if wanted == 1 else (1 - wanted) ** 4 * p**2 * math.log(1 - p)
        for x1, y1, x2, y2 in TARGETS[i]["boxes"].tolist():
            x, y = (x1 + x2) / 2 / STRIDE, (y1 + y2) / 2 / STRIDE
            said = maps[i, 4:, int(y), int(x)].tolist()
            wanted = [math.log((x2 - x1) / STRIDE), math.log((y2 - y1) / STRIDE), x - int(x), y - int(y)]
            total += sum(abs(a - b) for a, b in zip(said, wanted, strict=True))
    return total / 4


@pytest.mark.parametrize("classes", [[0, 1, 2, 3], [2, 0]])
def test_the_loss_is_that_of_the_paper(classes):
    maps = network()(torch.rand(3, 3, 32, 32, dtype=torch.float64)).detach()
    loss = CenterNet(3, 4).loss(maps, rows_of(TARGETS, 8).double(), torch.tensor(classes))
    assert loss.item() == pytest.approx(naive_loss(maps, classes), rel=1e-9)


def test_heatmaps_of_other_classes_and_cells_without_a_centre_learn_nothing():
    maps = torch.randn(3, 8, 8, 8, dtype=torch.float64, requires_grad=True)
    CenterNet(3, 4).loss(maps, rows_of(TARGETS, 4).double(), torch.tensor([1])).backward()
    learned = maps.grad.abs().sum((0, 2, 3)) > 0
    assert learned.tolist() == [False, True, False, False, True, True, True, True]
    assert int((maps.grad[:, 4] != 0).sum()) == 4


def test_a_batch_without_an_object_has_a_finite_loss():
    maps = torch.randn(2, 8, 8, 8)
    assert torch.isfinite(CenterNet(3, 4).loss(maps, rows_of([NONE, NONE], 4), torch.arange(4)))


def test_maps_that_say_the_truth_are_answered_by_the_true_boxes():
    rows, found = rows_of(TARGETS, 4), CenterNet(3, 4)
    maps = torch.full((3, 8, 8, 8), -9.0)
    for i, one in enumerate(TARGETS):
        boxes = torch.from_numpy(one["boxes"]).float()
        column, row = found.cells(boxes, (8, 8))
        maps[i, torch.from_numpy(one["labels"]), row, column] = 4.0
        maps[i, 4:, row, column] = found.shapes(boxes, column, row).T
    for one, said in zip(TARGETS, mappings(found.answers(maps, torch.arange(4))), strict=True):
        sure = said["scores"] > 0.5
        order = np.lexsort((said["boxes"][sure][:, 0], said["labels"][sure]))
        expected = np.lexsort((one["boxes"][:, 0], one["labels"]))
        np.testing.assert_array_equal(said["labels"][sure][order], one["labels"][expected])
        np.testing.assert_allclose(said["boxes"][sure][order], one["boxes"][expected], atol=1e-4)
    assert found.loss(maps, rows, torch.arange(4)) < 0.2


def test_only_asked_classes_are_answered_and_neighbours_of_a_peak_are_not():
    maps = torch.full((1, 8, 8, 8), -9.0)
    maps[0, 2, 3, 3], maps[0, 2, 3, 4], maps[0, 1, 6, 6] = 3.0, 2.5, 4.0
    said = mappings(CenterNet(3, 4).answers(maps, torch.tensor([0, 2])))[0]
    assert set(said["labels"].tolist()) <= {0, 2}
    assert (said["scores"] > 0.5).sum() == 1
