"""Multi-task tuning: the upper bound that continual learners are held against."""

from types import SimpleNamespace

import numpy as np

from ianvs.testalgorithms.language import LanguageLearner


class MultiTask(LanguageLearner):
    """Tunes fresh weights in each round on the conversations of all rounds so far, shuffled together."""

    sees_past_rounds = True

    def train(self, train_data, valid_data=None, *, train_rounds, **context):
        self.reset()
        everything = {column: np.concatenate([getattr(part, column) for part in train_rounds]) for column in "xy"}
        super().train(SimpleNamespace(**everything), valid_data, **context)
