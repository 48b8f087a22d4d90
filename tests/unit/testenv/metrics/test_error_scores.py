"""Metrics over the matrix of a score of which less is better: what docs/metrics.md says of each becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ianvs.base.types import Curve, ScoreMatrix
from ianvs.exam.metrics.matrix import compute_file, matrix_report
from ianvs.exam.metrics.metric import Metric
from ianvs.testenv.metrics.all_metrics import METRICS

SCORE = Metric("s", "score", "More is better.")
ERROR = Metric("e", "score", "Less is better.", higher_is_better=False)
ROUNDS = 4
EACH = 12  # examinations within a round, more than LCA10 needs
# Those that have options are of test sets that this learner has none of: see test_answer_scores.py.
MATRIX_METRICS = [metric for metric in METRICS if metric.level == "matrix" and metric.configure is None]
BY_NAME = {metric.name: metric for metric in MATRIX_METRICS}
REFERENCES = np.random.default_rng(7).uniform(0.2, 0.8, (3, ROUNDS))


def learner(seed: int, references: np.ndarray = REFERENCES) -> ScoreMatrix:
    """Scores from 0 to 1, examined within rounds too."""
    rng = np.random.default_rng(seed)
    count = ROUNDS * EACH
    scores = rng.uniform(0.05, 0.95, (count, ROUNDS))
    begun = np.repeat(np.arange(1, ROUNDS + 1), EACH)
    ended = begun - 1
    ended[EACH - 1 :: EACH] += 1
    curve = Curve(np.arange(1, count + 1), begun, ended, scores)
    untrained, joint, single_task = references
    ends = scores[EACH - 1 :: EACH]
    return ScoreMatrix.from_rounds(ends, untrained=untrained, joint=joint, single_task=single_task, curve=curve)


def error_of(matrix: ScoreMatrix) -> ScoreMatrix:
    """The same learner by its error, 1 - s."""
    return ScoreMatrix(
        1 - matrix.values,
        curve=replace(matrix.curve, scores=1 - matrix.curve.scores),
        joint=1 - matrix.joint,
        single_task=1 - matrix.single_task,
        higher_is_better=False,
    )


def by_the_rule(metric: Metric, matrix: ScoreMatrix) -> float:
    """What docs/metrics.md says of the metric of 1 - s, from the scores s."""
    value = metric.function(matrix)
    match metric.unit:
        case "change":
            return value
        case "score":
            return 1 - value
        case "ratio":  # of mean scores to the ideal on the first test set
            ideal = matrix.joint[0]
            return (1 - value * ideal) / (1 - ideal)
        case "relative change":
            errors, alone = 1 - matrix.R[-1], 1 - matrix.single_task
            return float(np.mean(100 * (alone - errors) / alone))


@pytest.mark.parametrize("metric", MATRIX_METRICS, ids=lambda metric: metric.name)
def test_of_an_error_it_is_what_the_rule_says(metric):
    for seed in range(20):
        matrix = learner(seed)
        assert metric.function(error_of(matrix)) == pytest.approx(by_the_rule(metric, matrix), abs=1e-12)
        if metric.series is not None:
            assert metric.series(error_of(matrix))[-1] == pytest.approx(metric.function(error_of(matrix)), nan_ok=True)


def order(metric: Metric, values: Sequence[float]) -> list[int]:
    return np.argsort(np.array(values) * (-1 if metric.higher_is_better else 1), kind="stable").tolist()


@pytest.mark.parametrize("metric", MATRIX_METRICS, ids=lambda metric: metric.name)
def test_an_error_ranks_learners_as_its_score_does(metric):
    # A change relative to a reference weighs test sets by that reference: here all weigh the same.
    references = REFERENCES if metric.unit != "relative change" else np.full_like(REFERENCES, 0.4)
    learners = [learner(seed, references) for seed in range(25)]
    by_score = order(metric.directed_by(SCORE), [metric.function(one) for one in learners])
    by_error = order(metric.directed_by(ERROR), [metric.function(error_of(one)) for one in learners])
    if "max(0" in metric.formula or metric.name == "DR_REM":  # ties, which rounding may break
        by_score, by_error = (
            [round(metric.function(learners[index]), 9) for index in ranked] for ranked in (by_score, by_error)
        )
    assert by_score == by_error


@pytest.mark.parametrize("metric", MATRIX_METRICS, ids=lambda metric: metric.name)
def test_of_a_score_nothing_changes(metric):
    assert metric.directed_by(SCORE) is metric


def test_forgetting_is_forgetting_of_whatever_score():
    remembers = np.array([[0.1, 0.9], [0.1, 0.1]])
    forgets = np.array([[0.1, 0.9], [0.9, 0.1]])
    for errors, lost in ((remembers, 0.0), (forgets, 0.8)):
        report = matrix_report(ScoreMatrix.from_rounds(errors, higher_is_better=False))
        assert report["BWT"] == pytest.approx(-lost)
        assert report["FM"] == report["CN_Forgetting"] == pytest.approx(lost)
    assert matrix_report(ScoreMatrix.from_rounds(forgets, higher_is_better=False))["AA"] == pytest.approx(0.5)


def test_the_worst_case_of_an_error_is_the_largest():
    errors = np.array([[0.1, 0.9], [0.7, 0.2]])
    report = matrix_report(ScoreMatrix.from_rounds(errors, higher_is_better=False))
    assert report["min_ACC"] == pytest.approx(0.7)


@pytest.mark.parametrize(("name", "higher"), [("AA", False), ("Omega_all", False), ("BWT", True), ("delta_m", True)])
def test_the_direction_of_a_column_is_that_of_what_it_shows(name, higher):
    assert BY_NAME[name].directed_by(ERROR).higher_is_better is higher
    assert BY_NAME["FM_restricted"].directed_by(ERROR).higher_is_better is False


def test_a_file_of_scores_may_say_that_less_is_better(tmp_path):
    file = tmp_path / "errors.json"
    file.write_text('{"R": [[0.1, 0.9], [0.9, 0.1]], "higher_is_better": false}')
    report = compute_file(file)
    assert (report["BWT"], report["AA"]) == (pytest.approx(-0.8), pytest.approx(0.5))
