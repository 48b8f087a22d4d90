"""Methods for numbers: one step worked by hand, what they keep, and the job that compares them, cut short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ianvs
from ianvs.testalgorithms.regression.number_learners import (
    NumberAGEM,
    NumberDER,
    NumberJoint,
    NumberLearner,
    NumberReplay,
)
from tests.errors import errors_of
from tests.unit.testalgorithms.exam_of_arrays import Data

JOB = Path(__file__).parents[3] / "configs" / "regression_stream" / "benchmarkingjob.yaml"
SHORT = {"hidden": 8, "epochs": 2, "batch_size": 8}
WITH_MEMORY = (NumberReplay, NumberAGEM, NumberDER)
METHODS = (NumberLearner, NumberJoint, *WITH_MEMORY)


def samples(k: int) -> Data:
    draw = np.random.default_rng(k)
    x = draw.normal(k, 1, (24, 3)).astype(np.float32)
    return Data(x, (x[:, 0] - 2 * x[:, 1]).astype(np.float32) - 3)


def made(method: Any) -> Any:
    return method(**SHORT, **({"capacity": 6} if method in WITH_MEMORY else {}))


def teach(learner: Any, k: int) -> Any:
    learner.train(samples(k), round=k, num_classes=0, seed=5, train_rounds=tuple(map(samples, range(1, k + 1))))
    return learner


def answers(learner: Any) -> Any:
    return learner.predict(Data(samples(9).x), num_classes=0, seed=5)


def test_a_step_goes_down_the_squared_error() -> None:
    learner, data = NumberLearner(network="linear", epochs=1, batch_size=24, learning_rate=0.1, momentum=0), samples(1)
    zeros = {"1.weight": np.zeros((1, 3), np.float32), "1.bias": np.zeros(1, np.float32)}
    learner.set_weights(zeros)
    teach(learner, 1)
    slope = -2 / 24 * np.array([*(data.x.T @ data.y), data.y.sum()])
    weight, bias = learner.get_weights().values()
    np.testing.assert_allclose([*weight[0], *bias], -0.1 * slope, rtol=1e-5)
    np.testing.assert_allclose(answers(learner), samples(9).x @ weight[0] + bias, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_one_goes_on_as_the_one_that_was_not(method: Any, tmp_path: Path) -> None:
    learner, other = teach(made(method), 1), made(method)
    other.load(learner.save(tmp_path / "model"))
    np.testing.assert_array_equal(answers(learner), answers(other))
    np.testing.assert_array_equal(answers(teach(learner, 2)), answers(teach(other, 2)))
    assert answers(learner).shape == (24,)


@pytest.mark.parametrize("method", WITH_MEMORY)
def test_the_memory_holds_samples_with_their_numbers(method: Any) -> None:
    """Numbers below 0 as well, which in class labels would mean that one is withheld."""
    learner = teach(teach(made(method), 1), 2)
    known = {tuple(x): y for k in (1, 2) for x, y in zip(samples(k).x.tolist(), samples(k).y.tolist(), strict=True)}
    kept = zip(learner.memory.x.tolist(), learner.memory.y[:, 0].tolist(), strict=True)
    assert [known[tuple(x)] == y for x, y in kept] == [True] * 6
    assert learner.memory.y.min() < 0


def test_other_exams_are_refused() -> None:
    assert errors_of(lambda: made(NumberReplay).check_exam(kind="classification", shape=(3,), num_classes=4)) == [
        ("refused-arguments", "")
    ]
    pairs = Data(samples(1).x, np.zeros((24, 2), np.float32))
    assert errors_of(lambda: made(NumberLearner).train(pairs, num_classes=0)) == [("refused-arguments", "")]


@pytest.mark.slow
def test_the_job_that_ships_tells_its_methods_apart(tmp_path: Path) -> None:
    short = {"dataset.train": 200, "dataset.test": 40, "seeds": [0], "engine": "inline"}
    found = ianvs.run(JOB, workspace=tmp_path, settings=short)
    assert [case.status for case in found] == ["finished"] * 5
    errors = {case.case.algorithm: case.metrics["MAE"] for case in found}
    assert errors["joint"] < min(errors["replay"], errors["der"]) < errors["finetune"]
    assert all(len(case.matrices["MAE"].values) == 6 for case in found)
