"""my_metric: a function of the true and the predicted classes of one test set. Replace what it does."""

import numpy as np


def my_metric(y_true, y_pred):
    """Accuracy of the class that is known worst. y_true, y_pred: (N,) class indices. A number comes back."""
    return min(np.mean(y_pred[y_true == label] == label) for label in np.unique(y_true))


# my_metric.higher_is_better = False  # where less is better
