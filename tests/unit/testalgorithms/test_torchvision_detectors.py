"""torchvision's detectors as networks of the methods for boxes, with weights in the layout of its own files."""

import numpy as np
import pytest
import torch
from torchvision.models import get_model

from ianvs.testalgorithms.detection.finetune.basemodel import DetectionFinetune
from ianvs.testalgorithms.detection.torchvision_detectors import TORCHVISION
from tests.errors import errors_of, printed
from tests.unit.testalgorithms.exam_of_shapes import Scenes, context, scenes, targets_of

COCO = 91  # outputs of torchvision's trained heads, background included
HEADS = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": ["roi_heads.box_predictor.cls_score", "roi_heads.box_predictor.bbox_pred"],
    "ssdlite320_mobilenet_v3_large": [f"head.classification_head.module_list.{i}.1" for i in range(6)],
}


@pytest.fixture(params=TORCHVISION)
def name(request):
    return request.param


def few(count=2):
    data = scenes(1)
    return Scenes(data.x[:count], data.y[:count], data.ids[:count])


def test_weights_from_a_file_are_loaded_except_for_the_head_and_are_trained_on(name, tmp_path):
    torch.manual_seed(1)
    trained = get_model(name, weights=None, weights_backbone=None, num_classes=COCO)
    file = tmp_path / f"{name}-coco.pth"
    state = trained.state_dict()
    if name.startswith("fasterrcnn"):  # its file comes from a network with frozen normalisation, which counts nothing
        state = {key: value for key, value in state.items() if not key.endswith("num_batches_tracked")}
    torch.save(state, file)
    learner = DetectionFinetune(
        network=name, weights=str(file), epochs=1, batch_size=2, learning_rate=1e-3, momentum=0.0
    )
    learner.check_exam(kind="detection", shape=(32, 32, 3), num_classes=8)

    own = learner.build_network((3, 32, 32), 8).model.state_dict()
    heads = {f"{place}.{kind}" for place in HEADS[name] for kind in ("weight", "bias")}
    for key, value in trained.state_dict().items():
        assert (own[key].shape == value.shape and torch.equal(own[key], value)) == (key not in heads), key
    printed(learner.remark)

    learner.train(few(), None, **context(1))
    after = learner.network.model.state_dict()
    assert all(value.isfinite().all() for value in after.values())
    assert not all(torch.equal(after[key], own[key]) for key in own if key not in heads)
    statistics = [key for key in own if key.endswith("running_mean")]
    assert statistics and all(torch.equal(after[key], own[key]) for key in statistics)
    said = learner.predict(Scenes(few().x), **context(1))
    for one in said:
        assert one["boxes"].shape == (len(one["scores"]), 4)
        assert set(one["labels"].tolist()) <= {0, 2}
        assert (one["boxes"] >= 0).all() and (one["boxes"] <= 32).all()

    other = DetectionFinetune(network=name, weights=str(file))
    other.load(learner.save(tmp_path / "model"))
    for one, same in zip(said, other.predict(Scenes(few().x), **context(1)), strict=True):
        np.testing.assert_array_equal(one["scores"], same["scores"])


def test_class_c_is_label_c_plus_1_and_a_picture_without_boxes_is_background(name):
    learner = DetectionFinetune(network=name)
    network = learner.build_network((3, 32, 32), 8)
    seen = []
    network.model.forward = lambda pictures, targets: seen.extend(targets) or {"a": torch.ones(()), "b": torch.ones(())}
    none = {"boxes": np.zeros((0, 4)), "labels": np.zeros(0, np.int64)}
    data = Scenes(few().x, targets_of(few().y[0], none), few().ids)
    x, rows = learner.tensors(data)
    assert network.loss(x.float(), rows, torch.arange(8)) == 2
    np.testing.assert_array_equal(seen[0]["labels"], few().y[0]["labels"] + 1)
    np.testing.assert_allclose(seen[0]["boxes"], few().y[0]["boxes"])
    assert seen[1]["boxes"].shape == (0, 4)


def test_a_missing_file_of_weights_is_an_error_before_anything_runs(name, tmp_path):
    learner = DetectionFinetune(network=name, weights=str(tmp_path / "none.pth"))
    assert errors_of(learner.check_exam, kind="detection", shape=(32, 32, 3), num_classes=8) == [("missing-file", "")]
    assert errors_of(
        lambda: DetectionFinetune(network=name, weights="COCO_V1").check_exam(
            kind="detection", shape=(8, 8, 3), num_classes=8
        )
    ) == [("missing-file", "")]
