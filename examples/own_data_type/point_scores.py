"""A metric over points."""

import numpy as np


def found_points(y_true, y_pred, within: float = 2.0):
    """F1 of points: an answer is right if a true point of its class, not yet found, is within so many pixels."""
    right = wanted = said = 0
    for true, answer in zip(y_true, y_pred, strict=True):
        wanted, said = wanted + len(true["labels"]), said + len(answer["labels"])
        free = set(range(len(true["labels"])))
        for label, at in zip(answer["labels"], answer["xy"], strict=True):
            near = [n for n in free if true["labels"][n] == label and np.hypot(*(true["xy"][n] - at)) <= within]
            if near:
                free.remove(min(near, key=lambda n: np.hypot(*(true["xy"][n] - at))))
                right += 1
    return 2 * right / (wanted + said) if wanted + said else float("nan")


found_points.higher_is_better = True
