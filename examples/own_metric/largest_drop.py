"""A metric over a score matrix: R[k, j] is the score on test set j after round k + 1."""

from ianvs.exam.metrics import matrix_metric


@matrix_metric("largest_drop", formula="max_kj R[k-1][j] - R[k][j]", source="mine", higher_is_better=False)
def largest_drop(R):
    """The most that the score on one test set fell from one round to the next."""
    return max(0.0, (R[:-1] - R[1:]).max())
