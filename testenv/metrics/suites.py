"""Measures that one paper proposes together: Omega, those of Diaz-Rodriguez et al., and learning accuracy.

R, nan and undefined values as in `ianvs.testenv.metrics.survey`.
"""

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import matrix_metric, mean

Array = NDArray[np.float64]

_OMEGA = "Kemker et al. 2018 (AAAI, arXiv 1708.02072)"
_DIAZ = "Diaz-Rodriguez et al. 2018 (arXiv 1810.13166)"


@matrix_metric(
    "Omega_base",
    unit="ratio",
    formula="Omega_base_k = mean_{2<=i<=k} R[i][1] / a, a the score on test set 1 of a fresh model trained on round 1",
    source=f"{_OMEGA}, Omega_base",
    by_round=True,
)
def omega_base(R: Array, joint: Array) -> Array:
    """Retention of the first round: mean score on its test set after each later round, relative to the ideal.

    joint: (T,); alpha_ideal, "the offline accuracy on the base set", is its first entry; nothing else of it is read.
    Above 1 where the learner exceeds it; undefined for one round and where alpha_ideal is 0.
    """
    return _relative(_from_the_second(R[:, :1].ravel()), joint)


@matrix_metric(
    "Omega_new",
    unit="score",
    formula="Omega_new_k = mean_{2<=i<=k} R[i][i]; Omega_new = Omega_new_T",
    source=f"{_OMEGA}, Omega_new",
    by_round=True,
)
def omega_new(R: Array) -> Array:
    """Acquisition of new rounds: mean score on the test set of the round just learned, without the first.

    Not relative to the ideal. Undefined for one round.
    """
    return _from_the_second(np.diagonal(R))


@matrix_metric(
    "Omega_all",
    unit="ratio",
    formula="Omega_all_k = mean_{2<=i<=k} AA_i / a, a the score on test set 1 of a fresh model trained on round 1",
    source=f"{_OMEGA}, Omega_all",
    by_round=True,
)
def omega_all(R: Array, joint: Array) -> Array:
    """Retention and acquisition: mean average accuracy after each later round, relative to the ideal of the first.

    joint: as for Omega_base; the paper divides by the same alpha_ideal. The score on all test data seen so far is the
    mean over test sets, each counting the same whatever its size.
    """
    averages = np.array([mean(R[k, : k + 1]) for k in range(len(R))])
    return _relative(_from_the_second(averages), joint)


def _from_the_second(values: Array) -> Array:
    """Return (T,) means over rounds 2..k."""
    return np.array([mean(values[1 : k + 1]) for k in range(len(values))])


def _relative(values: Array, joint: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = values / joint[:1]
    return np.where(np.isfinite(ratios), ratios, np.nan)


@matrix_metric("DR_A", unit="score", formula="sum_{i>=j} R[i][j] / (T(T+1)/2)", source=f"{_DIAZ}, A")
def dr_accuracy(R: Array) -> float:
    """Accuracy of Diaz-Rodriguez et al.: mean score on what was seen, after every round; as CLEAR_accuracy_seen."""
    return mean(R[np.tril_indices_from(R)])


@matrix_metric("DR_BWT", formula="sum_{i>j} (R[i][j] - R[j][j]) / (T(T-1)/2)", source=f"{_DIAZ}, BWT")
def dr_backward_transfer(R: Array) -> float:
    """Backward transfer of Diaz-Rodriguez et al.: mean change since just learned, after every later round.

    BWT reads the last row alone. Undefined for one round.
    """
    return _backward(R)


@matrix_metric("DR_BWT_plus", aliases=("DR_BWT+",), formula="max(0, DR_BWT)", source=f"{_DIAZ}, BWT+")
def dr_positive_backward_transfer(R: Array) -> float:
    """Positive backward transfer: DR_BWT where later rounds improve earlier ones, else 0. Undefined for one round."""
    return float(np.maximum(_backward(R), 0.0))


@matrix_metric("DR_REM", formula="1 - |min(0, DR_BWT)|", source=f"{_DIAZ}, REM")
def dr_remembering(R: Array) -> float:
    """Remembering: 1 minus what DR_BWT loses, for scores between 0 and 1. Undefined for one round."""
    return float(1 - np.abs(np.minimum(_backward(R), 0.0)))


@matrix_metric("DR_FWT", unit="score", formula="sum_{i<j} R[i][j] / (T(T-1)/2)", source=f"{_DIAZ}, FWT")
def dr_forward_transfer(R: Array) -> float:
    """Forward transfer of Diaz-Rodriguez et al.: mean score on all later test sets, an absolute score unlike FWT.

    As CLEAR_forward_transfer of a square matrix. Undefined for one round.
    """
    return mean(R[np.triu_indices_from(R, k=1)])


def _backward(R: Array) -> float:
    return mean((R - np.diagonal(R))[np.tril_indices_from(R, k=-1)])


@matrix_metric(
    "learning_accuracy",
    unit="score",
    aliases=("LA",),
    formula="LA_k = mean_{i<=k} R[i][i]; LA = LA_T",
    source="Riemer et al. 2019 (MER, ICLR, arXiv 1810.11910), LA",
    by_round=True,
)
def learning_accuracy(R: Array) -> Array:
    """Learning accuracy: mean score on the test set of the round just learned; as CLEAR_in_domain."""
    return np.array([mean(np.diagonal(R)[: k + 1]) for k in range(len(R))])
