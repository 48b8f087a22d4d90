"""Measures of a learner during learning, from scores in the order of time.

curve: examinations e = 0..E-1 after samples[e] training samples, scores[e, j] on test set j; "begun" and "ended" count
rounds (`ianvs.base.types.Curve`). If learners are examined only at the end of rounds, the rows of R are the curve and a
round is one step. R, nan and undefined values as in `ianvs.testenv.metrics.survey`.
"""

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import Curve
from ianvs.exam.metrics.definition import matrix_metric, mean
from ianvs.exam.metrics.metric import Metric

Array = NDArray[np.float64]

_GAP = "De Lange et al. 2023 (stability gap, ICLR, arXiv 2205.13452)"
_NAN = float("nan")
_BATCHES = 10  # beta of LCA10


@matrix_metric(
    "AAA",
    unit="score",
    aliases=("A_AUC",),
    formula="AAA_k = sum_e A(e) (n_e - n_{e-1}) / n_E over examinations e up to the end of round k, n_e the samples "
    "before examination e, n_0 = 0; A(e) = mean score over test sets of rounds begun; AAA = AAA_T",
    source="Koh et al. 2022 (i-Blurry, ICLR, arXiv 2110.10031) as A_AUC; Caccia et al. 2022 (ICLR, arXiv 2104.05025)",
    square=False,
    by_round=True,
)
def anytime_average_accuracy(R: Array, curve: Curve) -> Array:
    """Average anytime accuracy: area under the curve of the average accuracy over samples, divided by their number.

    A score counts for the samples since the examination before (the right Riemann sum of Koh et al.), so the untrained
    model does not count. From R alone it is AIA: every round counts the same. R may be (T, J): where test sets do not
    belong to rounds (one shared test set), A is the mean over all J of them.
    """
    rounds, tests = R.shape
    weights = np.diff(curve.samples, prepend=0)
    averages = np.array(
        [
            mean(row[:begun] if rounds == tests else row)
            for row, begun in zip(curve.scores, curve.begun.tolist(), strict=True)
        ]
    )

    def area(last: int | None) -> float:
        if last is None or not curve.samples[last]:
            return _NAN
        # If two examinations are at the same sample, the first one counts.
        counted = np.flatnonzero(weights[: last + 1])
        return float(averages[counted] @ weights[counted] / curve.samples[last])

    return np.array([area(last) for last in _round_ends(curve, rounds)])


@matrix_metric(
    "min_ACC",
    unit="score",
    formula="min_ACC_k = mean_{j<k} min_e score[e][j] over examinations e after the end of round j, up to that of k; "
    "min_ACC = min_ACC_T",
    source=f"{_GAP}, min-ACC",
    by_round=True,
)
def minimum_accuracy(R: Array, curve: Curve) -> Array:
    """Average minimum accuracy: mean over earlier test sets of the lowest score since their round ended.

    Undefined for one round. Between the ends of rounds it sees only what was examined there.
    """
    return np.array([_minimum(curve, k, last) for k, last in enumerate(_round_ends(curve, len(R)))])


@matrix_metric(
    "WC_ACC",
    unit="score",
    formula="WC_ACC_k = score[e_k][k] / k + (1 - 1/k) min_ACC_k, e_k the examination at the end of round k; "
    "WC_ACC = WC_ACC_T",
    source=f"{_GAP}, WC-ACC",
    by_round=True,
)
def worst_case_accuracy(R: Array, curve: Curve) -> Array:
    """Worst-case accuracy: the newest test set's score and the lowest scores of the earlier ones, averaged.

    After the first round it is the score on the first test set.
    """

    def worst_case(k: int, last: int | None) -> float:
        if last is None:
            return _NAN
        newest = float(curve.scores[last, k])
        return newest if k == 0 else (newest + k * _minimum(curve, k, last)) / (k + 1)

    return np.array([worst_case(k, last) for k, last in enumerate(_round_ends(curve, len(R)))])


def _minimum(curve: Curve, k: int, last: int | None) -> float:
    """Return min_ACC after round k (from 0), which ends at examination `last`."""
    if last is None:
        return _NAN
    begun, scores = curve.begun[: last + 1], curve.scores[: last + 1]
    # Examinations after the end of round j are those after a later round began; the one at its end is not among them.
    return mean(scores[begun > j + 1, j].min() for j in range(k))


def _windowed(window: int, rise: bool) -> Metric:
    """Return WF or WP with one window; the two differ only in the sign of the change."""
    name, move, extreme = ("WP", "rise", "plasticity") if rise else ("WF", "drop", "forgetting")
    change = "score[n][j] - score[m][j]" if rise else "score[m][j] - score[n][j]"

    def largest(R: Array, curve: Curve) -> float:
        sign = -1.0 if rise else 1.0
        series = [sign * curve.scores[curve.begun > j, j] for j in range(len(R))]
        if max(map(len, series), default=0) < 2:
            return _NAN
        return mean(_largest_drop(values, window) for values in series)

    largest.__doc__ = (
        f"Windowed {extreme}: largest {move} of a test set's score within {window} examinations, mean over test sets.\n"
        "\n"
        f"A test set is looked at since its round began; one whose score never shows a {move} counts 0, as in the "
        "authors' code. Depends on how often is examined: compare at the same number of samples between examinations. "
        "Undefined where no test set was examined twice."
    )
    return matrix_metric(
        f"{name}{window}",
        formula=f"mean_j max_{{m<=n<m+{window}}} ({change}), m, n examinations since round j began",
        source=f"{_GAP}, {name}^w with w = {window}",
        higher_is_better=rise,
    )(largest)


def _largest_drop(values: Array, window: int) -> float:
    """Return the largest values[m] - values[n] for m <= n < m + window; nan if any value is nan."""
    if not values.size or np.isnan(values).any():
        return _NAN
    # Differences to the values 1, 2, ... w-1 steps later: E * w of them, without a loop over examinations.
    shifts = range(1, min(window, len(values)))
    return max([0.0, *(float((values[:-shift] - values[shift:]).max()) for shift in shifts)])


windowed_forgetting_10 = _windowed(10, rise=False)
windowed_forgetting_100 = _windowed(100, rise=False)
windowed_plasticity_10 = _windowed(10, rise=True)
windowed_plasticity_100 = _windowed(100, rise=True)


@matrix_metric(
    "LCA10",
    unit="score",
    formula="LCA10 = mean_{0<=b<=10} Z_b, Z_b = mean_k score on test set k after b mini-batches of round k",
    source="Chaudhry et al. 2019 (A-GEM, ICLR, arXiv 1812.00420), definition of LCA_beta, with beta = 10",
)
def learning_curve_area(R: Array, untrained: Array, curve: Curve) -> float:
    """Learning curve area: mean score on a round's test set before and after each of its first ten mini-batches.

    Needs an examination after each of them: a mini-batch is what arrives between two examinations. Undefined where
    rounds have fewer than ten, or where the samples between two of these examinations are not always as many.
    untrained: (T,); b = 0 of the first round, nothing else of it is read.
    """
    steps: list[NDArray[np.int64]] = []
    shots: list[Array] = []
    for k, before in enumerate([None, *_round_ends(curve, len(R))[:-1]]):
        within = np.flatnonzero(curve.begun == k + 1)[:_BATCHES]
        if len(within) < _BATCHES or (k and before is None):
            return _NAN
        start, zero_shot = (0, untrained[0]) if before is None else (curve.samples[before], curve.scores[before, k])
        steps.append(np.diff(curve.samples[within], prepend=start))
        shots.append(np.array([zero_shot, *curve.scores[within, k]]))
    if len({int(step) for round_steps in steps for step in round_steps}) != 1:
        return _NAN
    return mean(np.concatenate(shots))


def _round_ends(curve: Curve, rounds: int) -> list[int | None]:
    """Return for each round the index of the examination at its end; None if there was none."""
    ends: list[int | None] = []
    for count in range(1, rounds + 1):
        within = np.flatnonzero(curve.begun <= count)
        last = int(within[-1]) if within.size else None
        ends.append(last if last is not None and curve.ended[last] == count else None)
    return ends
