"""Angles that are drawn, as those of the rotated MNIST of DER."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import rotate
from scipy.stats import kstest

from ianvs.config.spec import ScenarioSpec
from ianvs.exam.scenarios import build_exam, check_scenario, load_manifest, manifest
from tests.errors import errors_of, recorded
from tests.unit.exam.scenarios.exams import exam_of, same_exam
from tests.unit.exam.scenarios.small_datasets import dataset_of

PICTURES = dataset_of(range(4), range(4), shape=(6, 6, 1))


def angles(options, seed=0):
    exam = exam_of(PICTURES, "domain-incremental", {"rotation": options, "seed": seed})
    assert [round_.transform for round_ in exam.rounds] == [test.transform for test in exam.tests]
    return [round_.transform.degrees for round_ in exam.rounds]


def test_as_many_rounds_as_are_asked_for_each_turned_by_an_angle_of_its_own():
    exam = exam_of(PICTURES, "domain-incremental", {"rotation": {"random": 20}})
    drawn = [round_.transform.degrees for round_ in exam.rounds]
    assert len(set(drawn)) == 20
    assert [round_.name for round_ in exam.rounds][:2] == ["rotation 1", "rotation 2"]
    x = np.arange(36, dtype=np.float64).reshape(1, 6, 6, 1)
    turned = rotate(x[0, :, :, 0], drawn[0], axes=(1, 0), order=1, reshape=False)
    assert exam.rounds[0].transform(x)[0, :, :, 0] == pytest.approx(turned)


def test_angles_are_uniform_between_the_borders():
    drawn = [angle for seed in range(20) for angle in angles({"random": 20}, seed)]
    assert kstest(drawn, "uniform", (0, 180)).pvalue > 0.01
    narrow = angles({"random": 50, "between": [-10, 10.5]})
    assert -10 <= min(narrow) < -5 < 5 < max(narrow) < 10.5


def test_a_seed_draws_the_same_angles_and_another_one_others():
    assert angles({"random": 5}, 3) == angles({"random": 5}, 3) != angles({"random": 5}, 4)
    assert angles({"random": 7}, 3)[:5] == angles({"random": 5}, 3)


def test_a_manifest_holds_the_angles():
    exam = exam_of(PICTURES, "domain-incremental", {"rotation": {"random": 3}})
    assert same_exam(load_manifest(PICTURES, manifest(exam)), exam)


@pytest.mark.parametrize(
    ("rotation", "codes"),
    [
        ({"random": 0}, ["invalid-scenario"]),
        ({"randon": 3}, ["invalid-scenario", "invalid-scenario"]),
        ({"random": 3, "between": [180, 0]}, ["invalid-scenario"]),
        ({"random": 3, "between": [0]}, ["invalid-scenario"]),
        (5, ["invalid-option"]),
    ],
    ids=["none", "unknown", "larger first", "one end", "number"],
)
def test_a_mistake_is_told_without_the_data(rotation, codes):
    spec = ScenarioSpec("DIL", {"rotation": rotation})
    expected = [(code, "") for code in codes]
    assert recorded(check_scenario(spec)) == expected
    assert errors_of(build_exam, PICTURES, spec) == expected


def test_a_seed_beside_listed_angles_is_refused():
    options = {"rotation": [0, 5], "seed": 1}
    assert errors_of(exam_of, PICTURES, "domain-incremental", options) == [("invalid-option", "")]
