"""Joint training of a detector: the upper bound that continual learners are held against."""

from ianvs.testalgorithms.detection import DetectionLearner, joined, rows_of


class DetectionJoint(DetectionLearner):
    """Trains a fresh detector in each round on the pictures of all rounds so far, with the boxes of all of them."""

    sees_past_rounds = True

    def train(self, train_data, valid_data=None, *, train_rounds=(), **context):
        self.reset()
        super().train(train_rounds, valid_data, **context)

    def tensors(self, data):
        x, targets = joined(data)
        return x, rows_of(targets, self.max_objects)
