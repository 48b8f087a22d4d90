"""A metric: a function of true and predicted labels, named as in the testenv."""

import numpy as np


def worst_class_accuracy(y_true, y_pred):
    return min(np.mean(y_pred[y_true == label] == label) for label in np.unique(y_true))
