"""The detectors of torchvision, with weights from files."""

import torch
from torch import nn

from ianvs.authoring.weight_files import find_weights, fit, read_weights
from ianvs.testalgorithms.detection.targets import NOTHING

TORCHVISION = ("fasterrcnn_mobilenet_v3_large_320_fpn", "ssdlite320_mobilenet_v3_large")
ANSWERS = 100  # per image


class TorchvisionDetector(nn.Module):
    """A detector that resizes and normalises images (B, 3, H, W) in 0..1 itself. Class c is its label c + 1."""

    def __init__(self, name, num_classes):
        super().__init__()
        from torchvision.models import get_model

        self.num_classes, self.trained = num_classes, False
        self.model = get_model(name, weights=None, weights_backbone=None, num_classes=num_classes + 1)

    def fill(self, weights, initial):
        """Load weights with matching names and shapes from the file `weights` and tensors `initial`.

        Return a note on others.
        """
        given = [] if weights is None else [(read_weights(find_weights(weights)), f"weights '{weights}'")]
        given += [] if initial is None else [(initial, "the initial model")]
        self.trained = bool(given)
        messages = [fit(self.model, state, title)[0] for state, title in given]
        self.train(self.training)
        return "; ".join(filter(None, messages))

    def train(self, mode=True):
        """Set the mode.

        Pretrained batch normalisation keeps its statistics, because batches of a detector are too small.
        """
        super().train(mode)
        for layer in self.modules():
            if self.trained and isinstance(layer, nn.BatchNorm2d):
                layer.eval()
        return self

    def forward(self, x):
        """Return the images unchanged, because torchvision's computation depends on whether there are targets."""
        return x

    def loss(self, x, rows, classes):
        """Return the sum of torchvision's losses."""
        held = rows[..., 4] > NOTHING
        targets = [{"boxes": r[h, :4], "labels": r[h, 4].long() + 1} for r, h in zip(rows, held, strict=True)]
        return sum(self.model(list(x), targets).values())

    def answers(self, x, classes):
        """Return (B, ANSWERS, 6): x1 y1 x2 y2 score label; unused rows have the score -inf."""
        answers = x.new_full((len(x), ANSWERS, 6), -torch.inf)
        for rows, output in zip(answers, self.model(list(x)), strict=True):
            chosen = torch.isin(output["labels"] - 1, classes).nonzero()[:ANSWERS, 0]
            rows[: len(chosen), :4], rows[: len(chosen), 4], rows[: len(chosen), 5] = (
                output["boxes"][chosen],
                output["scores"][chosen],
                (output["labels"][chosen] - 1).to(rows.dtype),
            )
        return answers
