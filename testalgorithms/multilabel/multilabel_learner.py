"""A base class for several labels: TorchLearner with a separate logit and answer for each class."""

from types import MappingProxyType

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from ianvs.base.errors import PluginError, require_known
from ianvs.testalgorithms.label_sets import MultiLabelMasking
from ianvs.testalgorithms.nets import scene_body


def binary_cross_entropy(z, y, classes):
    """Return the mean over samples and `classes` of -y log p - (1 - y) log(1 - p), for logits z and labels y (N, C).

    p = sigmoid(z).
    """
    return binary_cross_entropy_with_logits(z[:, classes], y[:, classes].to(z.dtype))


def asymmetric_loss(z, y, classes, *, gamma_positive=0.0, gamma_negative=4.0, margin=0.05, through_weights=False):
    """Asymmetric loss (Ridnik et al. 2021, arXiv 2009.14119, eq. 3 to 7), summed over classes, mean over samples.

    -(1 - p)^gamma_positive log p where y is 1, -q^gamma_negative log(1 - q) elsewhere; p = sigmoid(z),
    q = max(p - margin, 0). Without margin and gammas it is the binary cross-entropy, summed over classes.
    through_weights: whether the gradient flows through the two powers, too; in the paper's code it does not.
    """
    z, y = z[:, classes], y[:, classes].to(z.dtype)
    p = z.sigmoid()
    q = (p - margin).clamp(min=0)
    weights = y * (1 - p) ** gamma_positive + (1 - y) * q**gamma_negative
    log_likelihood = y * logsigmoid(z) + (1 - y) * (1 - q).clamp(min=1e-8).log()
    return -((weights if through_weights else weights.detach()) * log_likelihood).sum(1).mean()


LOSSES = MappingProxyType({"bce": binary_cross_entropy, "asl": asymmetric_loss})


class MultilabelLearner(MultiLabelMasking):
    """Trains on each round's samples, each class by itself; by default, plain fine-tuning.

    In the hooks, y is (N, num_classes) uint8, 1 where a sample has the label; a label that the round does not teach is
    a 0 in it.

    criterion: "bce", binary cross-entropy, or "asl", asymmetric loss, over the classes seen so far.
    network: also "scene", `scene_body` with two `widths` and the maximum over all places, so that a small object counts
    as much as a large one.
    """

    reference = "ianvs.testalgorithms.multilabel:MultilabelLearner"

    def __init__(self, *, network="scene", widths=(16, 32), criterion="bce", **training):
        super().__init__(network=network, widths=widths, **training)
        require_known("criterion", criterion, LOSSES)
        self.criterion = LOSSES[criterion]

    def build_network(self, input_shape, num_classes):
        if self.architecture != "scene":
            return super().build_network(input_shape, num_classes)
        widths = self._options["widths"]
        body = scene_body(input_shape[0], widths)
        return nn.Sequential(body, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(widths[1], num_classes))

    def check_exam(self, *, kind, shape, num_classes):
        if kind != "multilabel":
            raise PluginError(
                f"{type(self).__name__} answers several labels, but this exam is one of {kind}.",
                code="refused-arguments",
            )
        super().check_exam(kind="classification", shape=shape, num_classes=num_classes)

    def loss(self, batch):
        return self.criterion(batch.outputs, batch.y, self.allowed(self.data.mask, batch.outputs.shape[1]))

    def predict(self, data, **context):
        """Return (N, num_classes) probabilities.

        -inf for classes that were not taught yet, which are therefore never answered.
        """
        logits = self.answer_logits(data, **context)
        return torch.where(logits > -torch.inf, logits.sigmoid(), -torch.inf).cpu().numpy()
