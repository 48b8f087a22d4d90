"""TRACE's measures over a score matrix: of the learned tasks, and of general test sets that are never learned.

R, nan and undefined values as in `ianvs.testenv.metrics.survey`; test sets beyond the T-th are the general ones.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.errors import InvalidValue, closest, one_line
from ianvs.base.types import ScoreMatrix
from ianvs.config.spec import MetricSpec
from ianvs.exam.data.options import Options, metric_options
from ianvs.exam.metrics.definition import matrix_metric, mean
from ianvs.exam.metrics.metric import Metric

Array = NDArray[np.float64]
_TRACE = "Wang et al. 2023 (TRACE, arXiv 2310.06762)"


@matrix_metric(
    "TRACE_OP", unit="score", formula="mean_{j<=T} R[T][j]", source=f"{_TRACE}, overall performance OP_T", square=False
)
def trace_overall(R: Array) -> float:
    """Overall performance of TRACE: mean score on the test sets of all rounds after the last one."""
    return mean(R[-1, : len(R)]) if R.size else float("nan")


@matrix_metric("TRACE_BWT", formula="(1/T) sum_{j<=T} (R[T][j] - R[j][j])", source=f"{_TRACE}, BWT_T", square=False)
def trace_backward_transfer(R: Array) -> float:
    """Backward transfer of TRACE: as BWT, with the last round, which adds 0, among those that are counted."""
    return mean(R[-1, : len(R)] - np.diagonal(R)) if R.shape[1] >= len(R) > 0 else float("nan")


class GeneralOptions(Options):
    """tests: names of the general test sets that count; without them all test sets that belong to no round."""

    tests: list[str] = Field(default_factory=list)


def _change(name: str, about: str) -> Metric:
    plain = Metric(
        name,
        "matrix",
        f"Change of {about}: mean over general test sets of the final score minus that before training.",
        source=f"{_TRACE}, delta R of {about}",
        formula="mean_j (R[T][j] - R[0][j]), j over `tests`, else over test sets of no round",
        needs=("untrained",),
    )

    def configured(spec: MetricSpec) -> Metric:
        options = metric_options(GeneralOptions, name, spec)
        tests = options.tests
        return replace(plain, function=lambda inputs: _mean_change(inputs, tests))

    def of_all(inputs: ScoreMatrix) -> float:
        return _mean_change(inputs, [])

    of_all.__doc__ = plain.summary
    return replace(plain, function=of_all, configure=configured)


def _mean_change(inputs: ScoreMatrix, tests: list[str]) -> float:
    for test in tests:
        if test not in inputs.tests:
            hint = f"{closest(test, inputs.tests)} There are: {one_line(inputs.tests)}"
            raise InvalidValue(f"there is no test set '{test}'.{hint}", "unfit-metric")
    columns = [inputs.tests.index(test) for test in tests] or [*range(len(inputs.R), inputs.R.shape[1])]
    change = mean(inputs.values[-1, columns] - inputs.values[0, columns])
    return change if inputs.higher_is_better else -change


delta_g = _change("delta_G", "general ability")
delta_if = _change("delta_IF", "instruction following")
delta_s = _change("delta_S", "safety")
