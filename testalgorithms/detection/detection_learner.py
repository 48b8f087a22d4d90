"""A base class for detectors: TorchLearner with boxes for labels."""

import torch

from ianvs.authoring import Batch
from ianvs.base.errors import PluginError, require_known
from ianvs.testalgorithms.detection.centernet import CenterNet
from ianvs.testalgorithms.detection.targets import mappings, rows_of
from ianvs.testalgorithms.detection.torchvision_detectors import TORCHVISION, TorchvisionDetector
from ianvs.testalgorithms.label_sets import MultiLabelMasking

DETECTOR_NAMES = ("centernet", *TORCHVISION)


class DetectionLearner(MultiLabelMasking):
    """Trains a detector on each round's images; by default, plain fine-tuning.

    In the hooks, y is (N, max_objects, 5): x1 y1 x2 y2 label in a row, label -1 where there is no object.
    Heatmaps of classes that were not taught yet are neither trained nor used in predictions.

    network: "centernet" with `widths`, or a detector of torchvision, with `weights`, a file, and its own resizing.
    max_objects: maximum number of boxes in a training image. Other options are those of TorchLearner.
    """

    reference = "ianvs.testalgorithms.detection:DetectionLearner"

    def __init__(self, *, network="centernet", widths=(16, 32), max_objects=16, scale=None, **training):
        scale = scale or ("symmetric" if network == "centernet" else "unit")
        super().__init__(network=network, widths=widths, scale=scale, **training)
        require_known("network", network, DETECTOR_NAMES)
        self.max_objects = max_objects
        if self.augment is not None or self.backbone_choice.picture_size is not None:
            raise PluginError(
                "`augment` and `picture_size` are not supported for detection: they would move the boxes.",
                code="conflicting-keys",
            )

    def check_exam(self, *, kind, **facts):
        if kind != "detection":
            raise PluginError(
                f"{type(self).__name__} predicts boxes, but the exam's data type is {kind}.", code="refused-arguments"
            )
        if self.backbone_choice.weights is not None:
            self.backbone_choice.check(self.architecture)

    def build_network(self, input_shape, num_classes):
        if self.architecture == "centernet":
            return CenterNet(input_shape[0], num_classes, self._options["widths"])
        network = TorchvisionDetector(self.architecture, num_classes)
        self.remark = network.fill(self.backbone_choice.weights, self._initial)
        return network

    def tensors(self, data):
        x = torch.from_numpy(data.x).permute(0, 3, 1, 2)  # as data.tensors(), whose labels must be numbers
        return x, rows_of(data.y, self.max_objects)

    def batch(self, data, x, y):
        outputs = self.logits(x)
        return Batch(x, y, outputs, outputs)

    def loss(self, batch):
        """Return the detector's loss over the classes seen so far."""
        return self.network.loss(batch.outputs, batch.y, self.allowed(self.data.mask, self.network.num_classes))

    def answers(self, x, mask):
        """Return (B, M, 6) x1 y1 x2 y2 score label; a score of -inf marks an unused row."""
        return self.network.answers(self.logits(x), self.allowed(mask, self.network.num_classes))

    def predict(self, data, **context):
        """Return N mappings: boxes (m, 4), labels (m,), scores (m,)."""
        return mappings(self.answer_logits(data, **context))
