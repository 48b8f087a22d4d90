"""What docs/scenarios.md shows can be run: each testenv, of 15 lines or fewer, builds its exam over digits."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from ianvs.base.entry_points import entries, is_ours
from ianvs.config import load_job
from ianvs.exam import data
from ianvs.exam.scenarios import build_exam, load_manifest, manifest, save_manifest
from ianvs.exam.scenarios.scenario_catalogue import ENTRY_POINTS, find_scenario
from tests.jobs import write_job
from tests.unit.exam.scenarios.exams import same_exam

DOCUMENT = Path(__file__).parents[4] / "docs" / "scenarios.md"
BLOCKS = [
    block
    for block in re.findall(r"```yaml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    if block.startswith("testenv:")
]


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    from ianvs.config.spec import DatasetSpec

    return data.load(DatasetSpec(name="digits"), tmp_path_factory.mktemp("cache"))


def scenario_of(block):
    return find_scenario(re.search(r"name: ([a-z-]+)", block.partition("scenario:")[2]).group(1))


def spec_of(folder, block):
    return load_job(write_job(folder, testenv=dedent(block.removeprefix("testenv:\n")))).testenvs[0].scenario


@pytest.mark.parametrize("block", BLOCKS)
def test_a_documented_testenv_builds_an_exam_over_digits(block, digits, tmp_path):
    assert len(block.strip().splitlines()) <= 15
    if scenario_of(block).names[0] == "manifest":
        recipe = next(other for other in BLOCKS if scenario_of(other).names[0] == "blurred-boundary")
        original = build_exam(digits, spec_of(tmp_path, recipe))
        save_manifest(original, tmp_path / "exam.json")
        assert same_exam(build_exam(digits, spec_of(tmp_path, block)), original)
        return
    exam = build_exam(digits, spec_of(tmp_path, block))
    assert exam.rules.scenario == scenario_of(block).names[0]
    for round_ in exam.rounds:
        assert len(round_.train)
        assert round_.train.dtype == np.int64
        assert len(np.unique(round_.train)) == len(round_.train)
    assert same_exam(load_manifest(digits, manifest(exam)), exam)


def test_every_scenario_that_digits_can_be_made_into_is_documented():
    ours = {point.name for point in entries(ENTRY_POINTS) if is_ours(point)}
    assert {scenario_of(block).names[0] for block in BLOCKS} == ours - {"multi-domain-incremental"}


def test_a_scenario_is_installed_under_its_first_name():
    for point in filter(is_ours, entries(ENTRY_POINTS)):
        assert point.load().names[0] == point.name
