"""The field's common measures of a score matrix: average accuracy, forgetting, transfer, intransigence.

R: (T, T), R[k, j] is the score on test set j after round k (both count from 0 in code, from 1 in formulas). If an entry
that a formula reads is nan, so is its value; entries that it does not read may be missing. All formulas are written for
scores of which more is better; `Metric.unit` describes how others are treated.
"""

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import matrix_metric, mean

Array = NDArray[np.float64]

_SURVEY = "Wang et al. 2024 (survey, arXiv 2302.00487)"


@matrix_metric(
    "AA",
    unit="score",
    aliases=("ACC", "GEM_ACC"),
    formula="AA_k = mean_{j<=k} R[k][j]; AA = AA_T",
    source=f"{_SURVEY}; as ACC in Lopez-Paz & Ranzato 2017, eq. 2",
    square=False,
    by_round=True,
)
def average_accuracy(R: Array) -> Array:
    """Average accuracy: mean score over the test sets of all rounds so far.

    R may be (T, J): where test sets do not belong to rounds (one shared test set), the mean is over all J of them.
    """
    return _average_accuracies(R)


@matrix_metric(
    "AIA",
    unit="score",
    formula="AIA_k = mean_{i<=k} AA_i; AIA = AIA_T",
    source=f"{_SURVEY}; Rebuffi et al. 2017 (iCaRL) as average incremental accuracy",
    square=False,
    by_round=True,
)
def average_incremental_accuracy(R: Array) -> Array:
    """Average incremental accuracy: mean of the average accuracies after each round.

    R may be (T, J), as for average accuracy.
    """
    return np.cumsum(_average_accuracies(R)) / np.arange(1, len(R) + 1)


@matrix_metric(
    "FM_restricted",
    aliases=("FM", "FM_from_j"),
    formula="FM_k = mean_{j<k} max_{j<=i<k} (R[i][j] - R[k][j]); FM_restricted = FM_T",
    source=f"Chaudhry et al. 2018 (arXiv 1801.10112), i >= j as usual; {_SURVEY}",
    higher_is_better=False,
    by_round=True,
)
def forgetting_restricted(R: Array) -> Array:
    """Forgetting against the best earlier model that had been taught the test set. May be negative."""
    return np.array([mean(R[j:k, j].max() - R[k, j] for j in range(k)) for k in range(len(R))])


@matrix_metric(
    "FM_literal",
    formula="FM_k = mean_{j<k} max_{1<=i<k} (R[i][j] - R[k][j]); FM_literal = FM_T",
    source=f"{_SURVEY}, as printed: the maximum is over all earlier models",
    higher_is_better=False,
    by_round=True,
)
def forgetting_literal(R: Array) -> Array:
    """Forgetting against the best earlier model, also those that had not yet been taught the test set.

    Larger than FM_restricted where a model did better on a test set before its round than ever after. May be negative.
    """
    return np.array([mean(R[:k, j].max() - R[k, j] for j in range(k)) for k in range(len(R))])


@matrix_metric(
    "BWT",
    aliases=("GEM_BWT",),
    formula="BWT_k = mean_{j<k} (R[k][j] - R[j][j]); BWT = BWT_T",
    source=f"Lopez-Paz & Ranzato 2017, eq. 3; {_SURVEY} for every k",
    by_round=True,
)
def backward_transfer(R: Array) -> Array:
    """Backward transfer: mean over earlier test sets of the final score minus the score when just learned.

    Reads the diagonal and the last row. Negative where the learner forgets; undefined for one round.
    """
    return np.array([mean(R[k, j] - R[j, j] for j in range(k)) for k in range(len(R))])


@matrix_metric(
    "FWT",
    aliases=("GEM_FWT",),
    formula="FWT = mean_{2<=j<=T} (R[j-1][j] - b_j), b_j the score of the untrained model",
    source="Lopez-Paz & Ranzato 2017, eq. 4",
)
def forward_transfer(R: Array, untrained: Array) -> float:
    """Forward transfer: mean of the score just before a test set's round minus the untrained model's score.

    untrained: (T,); its first entry is not read. Undefined for one round. Not the survey's FWT, see FWT_survey.
    """
    return mean(np.diagonal(R, offset=1) - untrained[1:])


@matrix_metric(
    "FWT_survey",
    formula="FWT_k = mean_{2<=j<=k} (R[j][j] - a~_j), a~_j the score of a fresh model trained on round j alone; FWT_T",
    source=_SURVEY,
    by_round=True,
)
def forward_transfer_survey(R: Array, single_task: Array) -> Array:
    """Forward transfer of the survey: mean gain when just learned over a fresh model trained on that round alone.

    single_task: (T,) reference scores a~_j; its first entry is not read. Another quantity than FWT.
    """
    gains = np.diagonal(R) - single_task
    return np.array([mean(gains[1 : k + 1]) for k in range(len(R))])


@matrix_metric(
    "IM",
    formula="IM_k = a*_k - R[k][k], a*_k the score on test set k of a fresh model trained on rounds 1..k; IM = IM_T",
    source=f"Chaudhry et al. 2018 (arXiv 1801.10112); {_SURVEY}",
    higher_is_better=False,
    by_round=True,
)
def intransigence(R: Array, joint: Array) -> Array:
    """Intransigence: how much better joint training does on the newest test set.

    joint: (T,) reference scores a*_k, one joint run for each k.
    """
    return joint - np.diagonal(R)


def _average_accuracies(R: Array) -> Array:
    """Return (T,) means of each row over the test sets of the rounds so far, or over all if they don't belong to
    rounds.
    """
    rounds, tests = R.shape
    return np.array([mean(R[k, : k + 1] if rounds == tests else R[k]) for k in range(rounds)])
