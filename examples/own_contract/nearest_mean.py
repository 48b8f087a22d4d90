"""The nearest class mean, as two functions. The state is (sum, count) of each class."""

import numpy as np


def fit(x, y, state, shrinkage=0.0):
    state = dict(state or {})
    for label in np.unique(y):
        samples, (total, count) = x[y == label].reshape((y == label).sum(), -1), state.get(label, (0, 0))
        state[label] = ((1 - shrinkage) * (total + samples.sum(0)), count + len(samples))
    return state


def answer(x, state):
    labels = np.array(sorted(state))
    means = np.stack([total / count for total, count in map(state.get, labels)])
    return labels[((x.reshape(len(x), 1, -1) - means) ** 2).sum(2).argmin(1)]
