"""The two modules that the paradigm works with: a linear classifier in numpy, and the server's average."""

import numpy as np


class SoftmaxRegression:
    """`train` makes `epochs` steps of gradient descent on all that a client has."""

    def __init__(self, learning_rate=0.5, epochs=20, inputs=2, classes=3):
        self.learning_rate, self.epochs = learning_rate, epochs
        self.weights = np.zeros((inputs + 1, classes))

    def train(self, train_data, valid_data=None):
        x, y = self._with_bias(train_data.x), np.eye(self.weights.shape[1])[train_data.y]
        for _ in range(self.epochs):
            self.weights -= self.learning_rate * x.T @ (self._shares(x) - y) / len(x)

    def predict(self, data):
        return self._shares(self._with_bias(data.x)).argmax(1)

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.weights = weights.copy()

    def save(self, path):
        np.save(path.with_suffix(".npy"), self.weights)
        return path.with_suffix(".npy")

    def load(self, path):
        self.weights = np.load(path)

    def _shares(self, x):
        scores = np.exp(x @ self.weights - (x @ self.weights).max(1, keepdims=True))
        return scores / scores.sum(1, keepdims=True)

    def _with_bias(self, x):
        return np.hstack([x.reshape(len(x), -1), np.ones((len(x), 1))])


class ServerMomentum:
    """The mean over samples of what clients sent, with momentum (FedAvgM, Hsu et al. 2019); 0 is plain averaging."""

    def __init__(self, momentum=0.0):
        self.momentum, self.weights, self.velocity = momentum, 0.0, 0.0

    def aggregate(self, weights, samples):
        step = np.average(weights, axis=0, weights=samples) - self.weights
        self.velocity = self.momentum * self.velocity + step
        self.weights = self.weights + self.velocity
        return self.weights

    def save(self, path):
        np.savez(path.with_suffix(".npz"), weights=self.weights, velocity=self.velocity)
        return path.with_suffix(".npz")

    def load(self, path):
        with np.load(path) as saved:
            self.weights, self.velocity = saved["weights"], saved["velocity"]
