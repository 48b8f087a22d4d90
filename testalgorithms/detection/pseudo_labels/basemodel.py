"""Pseudo-labels: what the old detector is sure of counts as true."""

from dataclasses import replace

import torch

from ianvs.testalgorithms.detection import DetectionLearner, box_iou
from ianvs.testalgorithms.label_sets import KnownClasses


class DetectionPseudoLabels(DetectionLearner, KnownClasses):
    """Adds to a round's boxes those of the detector from before it (Liu et al. 2023, CL-DETR, section 3.2).

    Added are answers of classes that the round doesn't teach with a score of `threshold` at least, the highest first,
    as long as there is room, whose IoU with every true box is below `overlap`.
    """

    def __init__(self, *, threshold=0.4, overlap=0.7, **training):
        super().__init__(**training)
        self.threshold, self.overlap = threshold, overlap

    def training_data(self, data):
        old = [c for c in self.known_classes if c not in self.taught(data)]
        if not old:
            return data
        mask = torch.full((self.network.num_classes,), -torch.inf, device=data.device)
        mask[old] = 0.0
        answers = self.each(data.x, lambda x: self.answers(x, mask)).to(data.y.device)
        self._set_training()
        return replace(data, y=self.completed(data.y, answers))

    def completed(self, y, answers):
        """The rows y (N, K, 5) with those answers (N, M, 6) that are believed."""
        true = y[..., 4] >= 0
        covered = (box_iou(answers, y) * true[:, None]).amax(2)
        sure = (answers[..., 4] >= self.threshold) & (covered < self.overlap)
        added = answers[..., [0, 1, 2, 3, 5]].where(sure[..., None], -1.0)
        rank = torch.where(sure, answers[..., 4], -torch.inf)
        rank = torch.cat([torch.where(true, torch.inf, -torch.inf), rank], 1)  # true boxes stay
        order = rank.argsort(dim=1, descending=True, stable=True)[:, : y.shape[1], None]
        return torch.cat([y, added], 1).gather(1, order.expand(-1, -1, 5))

    def taught(self, data):
        return {int(c) for c in data.y[..., 4].unique().tolist() if c >= 0}
