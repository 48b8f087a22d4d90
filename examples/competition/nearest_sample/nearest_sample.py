"""An entry that remembers some samples of each class."""

import numpy as np


class NearestSample:
    """Nearest neighbour among the first `per_class` samples of each class."""

    def __init__(self, per_class=30):
        self.per_class, self.memory, self.y = per_class, np.zeros((0, 64), np.float32), np.zeros(0, int)

    def train(self, train_data):
        x, y = train_data.x.reshape(len(train_data), -1), train_data.y
        chosen = np.concatenate([np.flatnonzero(y == c)[: self.per_class] for c in np.unique(y)])
        self.memory, self.y = np.concatenate([self.memory, x[chosen]]), np.concatenate([self.y, y[chosen]])

    def predict(self, data):
        if not len(self.y):
            return np.zeros(len(data), int)
        x = data.x.reshape(len(data), -1)
        return self.y[[int(((self.memory - sample) ** 2).sum(1).argmin()) for sample in x]]

    def save(self, path):
        path = path.with_suffix(".npz")
        np.savez(path, memory=self.memory, y=self.y)
        return path

    def load(self, path):
        stored = np.load(path)
        self.memory, self.y = stored["memory"], stored["y"]
