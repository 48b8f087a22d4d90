"""Cumulative training: all data so far, but without starting again."""

from ianvs.authoring import Joined, TorchLearner


class Cumulative(TorchLearner):
    """Trains on the data of all rounds so far, from the weights of the round before.

    The same minimum as joint training; its start differs.
    """

    sees_past_rounds = True

    def train(self, train_data, valid_data=None, *, train_rounds=(), pretraining=None, **context):
        if pretraining is not False:  # else a copy is adapted to a downstream task
            train_data = Joined(train_rounds)
        super().train(train_data, valid_data, pretraining=pretraining, **context)
