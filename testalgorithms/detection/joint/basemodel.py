"""Joint training of a detector: the upper bound that continual learners are held against."""

import torch

from ianvs.authoring import Joined
from ianvs.testalgorithms.detection import DetectionLearner


class DetectionJoint(DetectionLearner):
    """Trains a fresh detector in each round on the images of all rounds so far, with the boxes of all their classes."""

    sees_past_rounds = True

    def train(self, train_data, valid_data=None, *, train_rounds=(), **context):
        self.reset()
        super().train(Joined(train_rounds), valid_data, **context)

    def tensors(self, data):
        parts = [super(DetectionJoint, self).tensors(part) for part in data.rounds]
        return tuple(map(torch.cat, zip(*parts, strict=True)))
