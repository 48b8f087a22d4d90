"""Measures that one benchmark or tool defines for itself, under names that mention it.

R, nan and undefined values as in `ianvs.testenv.metrics.survey`. CLEAR's four measures are absolute scores, not
differences.
"""

import numpy as np
from numpy.typing import NDArray

from ianvs.exam.metrics.definition import matrix_metric, mean

Array = NDArray[np.float64]

_CLEAR = "Lin et al. 2021 (CLEAR, NeurIPS Datasets and Benchmarks, arXiv 2201.06289)"
_CONTINUAL_NEXT = "Continual-NExT (github.com/ecnu-sii/Continual-NExT), README"
_CIA = "Qiao et al. 2025 (CIA, ICML, arXiv 2410.10868)"
_IANVS = "KubeEdge Ianvs, core/testcasecontroller/metrics/metrics.py"


def _below(R: Array) -> Array:
    return R[np.tril_indices_from(R, k=-1)]


def _above(R: Array) -> Array:
    return R[np.triu_indices_from(R, k=1)]


def _one_test_set_per_round(R: Array) -> bool:
    """Return whether R has one test set per round, or one more.

    The additional one is of data after the last round, as in CLEAR's streaming protocol, which reads R above its
    diagonal.
    """
    rounds, tests = R.shape
    return tests in (rounds, rounds + 1)


@matrix_metric(
    "delta_m",
    unit="relative change",
    formula="(100/T) sum_t (R[T][t] - s_t) / s_t, s_t the score of a single-task model on test set t",
    source="Maninis et al. 2019 (CVPR), eq. 1; Garg et al. 2022 (MDIL-SS, WACV)",
)
def delta_m(R: Array, single_task: Array) -> float:
    """Mean relative change against single-task models in percent, after the last round; negative is a drop.

    single_task: (T,) scores of models that were trained on one round alone.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        change = 100 * (R[-1] - single_task) / single_task
    return mean(np.where(np.isfinite(change), change, np.nan)) if len(R) else float("nan")


@matrix_metric("CLEAR_in_domain", unit="score", formula="mean_i R[i][i]", source=_CLEAR)
def clear_in_domain(R: Array) -> float:
    """In-domain accuracy of CLEAR: mean score on the test set of the round just learned."""
    return mean(np.diagonal(R))


@matrix_metric("CLEAR_next_domain", unit="score", formula="mean_{i<T} R[i][i+1]", source=_CLEAR, square=False)
def clear_next_domain(R: Array) -> float:
    """Next-domain accuracy of CLEAR: mean score on the test set of the round to come.

    R may be (T, T+1), with a test set of what comes after the last round; the mean is then over i<=T. Undefined for
    one round without it.
    """
    return mean(np.diagonal(R, offset=1)) if _one_test_set_per_round(R) else float("nan")


@matrix_metric("CLEAR_backward_transfer", unit="score", formula="mean_{i>j} R[i][j]", source=_CLEAR)
def clear_backward_transfer(R: Array) -> float:
    """Backward transfer of CLEAR: mean score on earlier test sets, an absolute score unlike BWT."""
    return mean(_below(R))


@matrix_metric("CLEAR_forward_transfer", unit="score", formula="mean_{i<j} R[i][j]", source=_CLEAR, square=False)
def clear_forward_transfer(R: Array) -> float:
    """Forward transfer of CLEAR: mean score on all later test sets, an absolute score unlike FWT.

    R may be (T, T+1), with a test set of what comes after the last round.
    """
    return mean(_above(R)) if _one_test_set_per_round(R) else float("nan")


@matrix_metric(
    "CLEAR_accuracy_seen", unit="score", formula="mean_{i>=j} R[i][j]", source="Avalanche's evaluation of CLEAR"
)
def clear_accuracy_seen(R: Array) -> float:
    """Accuracy on what was seen: mean score over the diagonal and everything below it."""
    return mean(R[np.tril_indices_from(R)])


@matrix_metric(
    "CLEAR_challenge_score",
    unit="score",
    formula="(in_domain + next_domain + backward_transfer + forward_transfer) / 4",
    source="CLEAR challenge at CVPR 2022",
)
def clear_challenge_score(R: Array) -> float:
    """Score of the CLEAR challenge: plain mean of CLEAR's four. Undefined for one round."""
    return mean([mean(np.diagonal(R)), mean(np.diagonal(R, offset=1)), mean(_below(R)), mean(_above(R))])


@matrix_metric(
    "CN_Avg_ACC",
    unit="score",
    aliases=("Avg.ACC",),
    formula="mean_i R[T][i]",
    source=f"{_CONTINUAL_NEXT}; {_CIA}",
    square=False,
)
def cn_average_accuracy(R: Array) -> float:
    """Avg.ACC of Continual-NExT: mean score over all test sets after the last round; equals AA."""
    return mean(R[-1:].ravel())


@matrix_metric(
    "CN_Forgetting",
    aliases=("CN_FOR_reported", "FOR"),
    formula="mean_{i<T} (max_{i<=j<=T-1} R[j][i] - R[T][i])",
    source=f"{_CONTINUAL_NEXT}, with the sign of its tables",
    higher_is_better=False,
)
def cn_forgetting(R: Array) -> float:
    """Forgetting of Continual-NExT as its tables print it, positive for a loss; equals FM_restricted."""
    return mean(R[j:-1, j].max() - R[-1, j] for j in range(len(R) - 1))


@matrix_metric(
    "CN_FOR_signed",
    formula="mean_{i<T} (R[T][i] - max_{i<=j<=T-1} R[j][i])",
    source=f"{_CONTINUAL_NEXT}, with the sign of its formula",
)
def cn_forgetting_signed(R: Array) -> float:
    """Forgetting of Continual-NExT as its formula is written, negative for a loss: minus CN_Forgetting."""
    return mean(R[-1, j] - R[j:-1, j].max() for j in range(len(R) - 1))


@matrix_metric(
    "CN_New_ACC", unit="score", aliases=("New.ACC",), formula="mean_i R[i][i]", source=f"{_CONTINUAL_NEXT}; {_CIA}"
)
def cn_new_accuracy(R: Array) -> float:
    """New.ACC of Continual-NExT: mean score on the test set of the round just learned."""
    return mean(np.diagonal(R))


@matrix_metric("CIA_forgetting_diag", formula="mean_{i<T} (R[i][i] - R[T][i])", source=_CIA, higher_is_better=False)
def cia_forgetting(R: Array) -> float:
    """Forgetting of CIA: mean over earlier test sets of the score when just learned minus the final one; -BWT."""
    return mean(np.diagonal(R)[:-1] - R[-1, :-1]) if len(R) else float("nan")


@matrix_metric(
    "Ianvs_BWT",
    aliases=("ianvs_bwt", "IANVS_BWT"),
    formula="(1/T) mean_j (R[T][j] - R[0][j]), R[0] the row before the first round",
    source=_IANVS,
    first_row=True,
)
def ianvs_backward_transfer(R: Array, untrained: Array) -> float:
    """What Ianvs calls BWT: total gain over the first row divided by T. Cannot see forgetting, see BWT.

    Ianvs averages the gains between consecutive rows over all rows and columns; the rows between cancel out.
    untrained: (T,); Ianvs's own row 0 is a model trained on one sample.
    """
    return mean(R[-1] - untrained) / len(R) if len(R) else float("nan")


@matrix_metric(
    "Ianvs_FWT",
    aliases=("ianvs_fwt", "IANVS_FWT"),
    formula="(1/T) sum_{1<=i<=T} (R[i-1][i] - R[0][i]), R[0] the row before the first round; the first term is 0",
    source=_IANVS,
    first_row=True,
)
def ianvs_forward_transfer(R: Array, untrained: Array) -> float:
    """What Ianvs calls FWT: as FWT, but the sum is divided by T and its first term is always 0.

    untrained: (T,); Ianvs's own row 0 is a model trained on one sample. One round gives 0, as in Ianvs.
    """
    before = np.vstack([untrained, R[:-1]])  # before[i] is the model that round i starts from
    return mean(np.diagonal(before) - untrained)


@matrix_metric(
    "task_avg_acc",
    unit="score",
    formula="mean_j R[T][j]",
    source="KubeEdge Ianvs, paradigm lifelonglearning, not rounded",
    square=False,
)
def task_average_accuracy(R: Array) -> float:
    """task_avg_acc of Ianvs: mean score over all tasks' test sets after the last round; equals AA."""
    return mean(R[-1:].ravel())


@matrix_metric(
    "forget_rate",
    formula="(1/T) sum_k f_k, f_k = (1/k) sum_{j<=k} max(0, max_{j<=i<k} R[i][j] - R[k][j]), f_1 = 0",
    source="KubeEdge Ianvs, paradigm federatedclassincrementallearning, by test sets instead of single samples, not "
    "rounded",
    higher_is_better=False,
)
def forget_rate(R: Array) -> float:
    """forget_rate of Ianvs: mean over rounds of how far test sets taught so far are below their best, never below 0.

    The round just taught counts with 0. Ianvs takes the best of each sample on its own: its value is never lower.
    """
    rates = [mean(max(0.0, R[j:k, j].max() - R[k, j]) if j < k else 0.0 for j in range(k + 1)) for k in range(len(R))]
    return float("nan") if np.isnan(R[np.tril_indices_from(R)]).any() else mean(rates)
