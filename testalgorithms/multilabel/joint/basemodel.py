"""Joint training on several labels: the upper bound that continual learners are held against."""

from ianvs.authoring import Joined
from ianvs.testalgorithms.multilabel import MultilabelLearner


class MultilabelJoint(MultilabelLearner):
    """Trains a fresh model in each round on the samples of all rounds so far, with the labels of all their classes."""

    sees_past_rounds = True

    def train(self, train_data, valid_data=None, *, train_rounds=(), **context):
        self.reset()
        super().train(Joined(train_rounds), valid_data, **context)
