"""A metric over points."""

import numpy as np

from ianvs.exam.metrics.definition import score_metric


@score_metric("found_points", formula="2 |right| / (|true| + |answered|)", source="this example")
def found_points(record):
    """F1 of points of the test set's classes: one is right within 2 pixels of a true one that is not found yet."""
    right = both = 0
    for labelled, predicted in zip(record.y_true, record.y_pred, strict=True):
        for label in record.labels:  # all test sets are of the same images, each under its own classes
            free = list(labelled["xy"][labelled["labels"] == label])
            answers = predicted["xy"][predicted["labels"] == label]
            both += len(free) + len(answers)
            for point in answers:
                gaps = [np.hypot(*(true_point - point)) for true_point in free]
                if gaps and min(gaps) <= 2:
                    free.pop(int(np.argmin(gaps)))
                    right += 1
    return 2 * right / both if both else float("nan")
