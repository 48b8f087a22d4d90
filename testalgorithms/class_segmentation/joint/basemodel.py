"""The upper bound of class-incremental segmentation."""

from ianvs.authoring import Joined
from ianvs.testalgorithms.class_segmentation import DenseLearner


class DenseJoint(DenseLearner):
    """Trains a fresh network in each round on the images of all rounds so far, with all classes that were taught."""

    sees_past_rounds = True

    def train(self, train_data, valid_data=None, *, train_rounds=(), **context):
        self.reset()
        super().train(Joined(train_rounds), valid_data, **context)
