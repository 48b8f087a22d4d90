"""A federated client in numpy: a linear classifier whose weights can be taken out and put in; and a server."""

import numpy as np


class SoftmaxClient:
    """`train` makes `epochs` steps of gradient descent on all that a client has in a round."""

    def __init__(self, learning_rate: float = 0.5, epochs: int = 20):
        self.learning_rate, self.epochs, self.weights = learning_rate, epochs, None

    def train(self, train_data, valid_data=None, *, num_classes):
        x, y = self._with_bias(train_data), np.eye(num_classes)[train_data.y]
        if self.weights is None:
            self.weights = np.zeros((x.shape[1], num_classes))
        for _ in range(self.epochs):
            self.weights -= self.learning_rate * x.T @ (self._shares(x) - y) / len(x)

    def predict(self, data):
        if self.weights is None:
            return np.zeros(len(data), int)
        return self._shares(self._with_bias(data)).argmax(axis=1)

    def get_weights(self):  # what is sent: an array, or lists and mappings of arrays; None: nothing yet
        return self.weights

    def set_weights(self, weights):
        self.weights = weights.copy()

    def save(self, path):
        np.savez(path, **({} if self.weights is None else {"weights": self.weights}))
        return f"{path}.npz"

    def load(self, path):
        with np.load(path) as saved:
            self.weights = saved.get("weights")

    def _shares(self, x):
        scores = np.exp(x @ self.weights - (x @ self.weights).max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def _with_bias(self, data):
        return np.hstack([data.x.reshape(len(data), -1), np.ones((len(data), 1))])


class TrimmedMean:
    """The server leaves out the smallest and the largest of each weight (Yin et al. 2018), so that one bad client does
    no harm."""

    def aggregate(self, weights, samples):
        ordered = np.sort(np.stack(weights), axis=0)
        return ordered[1:-1].mean(axis=0) if len(weights) > 2 else ordered.mean(axis=0)
