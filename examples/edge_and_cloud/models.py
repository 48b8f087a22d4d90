"""A small model at the edge, a large one in the cloud, and a router between them. Nothing of ianvs is imported."""

import numpy as np


class EdgeMeans:
    """Nearest class mean: an image for each class is all that it keeps."""

    def __init__(self):
        self.sums, self.counts = {}, {}

    def train(self, train_data, valid_data=None):
        for x, y in zip(train_data.x, train_data.y):
            self.sums[y] = self.sums.get(y, 0) + x.ravel()
            self.counts[y] = self.counts.get(y, 0) + 1

    def predict(self, data, *, num_classes):
        return self.probabilities(data, num_classes=num_classes).argmax(axis=1)

    def probabilities(self, data, *, num_classes):  # (N, C), for routers that are asked after the edge
        scores = np.full((len(data), num_classes), -np.inf if self.sums else 0.0)
        for y in self.sums:
            scores[:, y] = -np.square(data.x.reshape(len(data), -1) - self.sums[y] / self.counts[y]).sum(axis=1)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shares / shares.sum(axis=1, keepdims=True)

    def save(self, path):
        np.savez(path, labels=[*self.sums], sums=[*self.sums.values()], counts=[*self.counts.values()])
        return f"{path}.npz"

    def load(self, path):
        with np.load(path) as saved:
            self.sums = dict(zip(saved["labels"], saved["sums"]))
            self.counts = dict(zip(saved["labels"], saved["counts"]))


class CloudNeighbours:
    """Nearest neighbour among all that was taught, which only the cloud has the room for."""

    def __init__(self):
        self.x, self.y = None, None

    def train(self, train_data, valid_data=None):
        x, y = train_data.x.reshape(len(train_data), -1), train_data.y
        self.x = x if self.x is None else np.concatenate([self.x, x])
        self.y = y if self.y is None else np.concatenate([self.y, y])

    def predict(self, data):
        if self.x is None:
            return np.zeros(len(data), int)
        x = data.x.reshape(len(data), -1)
        return self.y[(np.square(self.x).sum(1) - 2 * x @ self.x.T).argmin(axis=1)]

    def save(self, path):
        np.savez(path, **({} if self.x is None else {"x": self.x, "y": self.y}))
        return f"{path}.npz"

    def load(self, path):
        with np.load(path) as saved:
            self.x, self.y = (saved["x"], saved["y"]) if "x" in saved else (None, None)


class InkRouter:
    """Decides before any model is asked: a digit with an unusual amount of ink is hard. It learns what is usual."""

    def __init__(self, width: float = 1.0):
        self.width, self.ink = width, np.empty(0)

    def train(self, train_data):  # a router may learn; it need not
        self.ink = np.concatenate([self.ink, self._ink(train_data)])

    def hard(self, data, probabilities):  # (N,) booleans; probabilities: None, the edge was not asked yet
        if not len(self.ink):
            return np.zeros(len(data), bool)
        return np.abs(self._ink(data) - self.ink.mean()) > self.width * self.ink.std()

    def save(self, path):
        np.save(f"{path}.npy", self.ink)
        return f"{path}.npy"

    def load(self, path):
        self.ink = np.load(path)

    def _ink(self, data):
        return data.x.reshape(len(data), -1).sum(axis=1)
