"""What a linear classifier can still read from a learner's features: forgetting in the representation itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROBED", "probed_labels"]

PROBED = 20_000  # samples that a probe is fitted on, the first of them where there are more
ITERATIONS = 1000


def probed_labels(
    fitted_on: NDArray[np.float32], labels: NDArray[np.int64], asked: NDArray[np.float32], classes: int
) -> NDArray[Any]:
    """(N,) labels of a test set as a probe predicts them; the learner's weights stay as they are.

    The probe is multinomial logistic regression (L2, C = 1) on standardised features, fitted for each test set on the
    training samples of its round, also of rounds to come (Davari et al. 2022, arXiv 2203.13381, section 3).
    fitted_on: (M, D) features of samples with `labels` (M,). asked: (N, D). classes: how many the exam has.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kept = np.min_scalar_type(max(classes - 1, 1))
    if len(np.unique(labels)) == 1:  # nothing to tell apart
        return np.full(len(asked), labels[0], dtype=kept)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS))
    probe.fit(fitted_on, labels)
    predicted: NDArray[Any] = probe.predict(asked).astype(kept)
    return predicted
