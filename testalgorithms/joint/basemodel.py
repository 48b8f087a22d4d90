"""Joint training: the upper bound that continual learners are held against."""

from ianvs.authoring import Joined, TorchLearner


class Joint(TorchLearner):
    """Trains a fresh model in each round on the data of all rounds so far.

    min over theta of the mean of -log p(y | x; theta), over the samples of rounds 1 to k.
    """

    sees_past_rounds = True

    def train(self, train_data, valid_data=None, *, train_rounds=(), pretraining=None, **context):
        if pretraining is not False:  # else a copy is adapted to a downstream task
            self.reset()
            train_data = Joined(train_rounds)
        super().train(train_data, valid_data, pretraining=pretraining, **context)
