"""Joint training on several labels: the upper bound that continual learners are held against."""

import numpy as np
import torch

from ianvs.testalgorithms.multilabel import MultilabelLearner


class MultilabelJoint(MultilabelLearner):
    """Trains a fresh model in each round on the samples of all rounds so far, each once, with the labels of all."""

    sees_past_rounds = True

    def train(self, train_data, valid_data=None, *, train_rounds=(), **context):
        self.reset()
        super().train(train_rounds, valid_data, **context)

    def tensors(self, data):
        parts = [part.tensors("cpu") for part in data]
        ids = np.concatenate([part.ids for part in data])
        _, first, which = np.unique(ids, return_index=True, return_inverse=True)
        x, y = (torch.cat([part[column] for part in parts]) for column in (0, 1))
        held = torch.zeros(len(first), y.shape[1]).index_add_(0, torch.from_numpy(which), y.float())
        return x[first], held.bool().to(y.dtype)
