"""An entry that remembers the mean of each class."""

import numpy as np


class NearestMean:
    """Nearest class mean."""

    def __init__(self):
        self.means = {}

    def train(self, train_data):
        x = train_data.x.reshape(len(train_data), -1)
        self.means |= {int(c): x[train_data.y == c].mean(0) for c in np.unique(train_data.y)}

    def predict(self, data):
        if not self.means:
            return np.zeros(len(data), int)
        x, classes = data.x.reshape(len(data), -1), np.array(sorted(self.means))
        distances = np.stack([((x - self.means[c]) ** 2).sum(1) for c in classes])
        return classes[distances.argmin(0)]

    def save(self, path):
        path = path.with_suffix(".npz")
        np.savez(path, **{str(c): mean for c, mean in self.means.items()})
        return path

    def load(self, path):
        self.means = {int(c): mean for c, mean in np.load(path).items()}
