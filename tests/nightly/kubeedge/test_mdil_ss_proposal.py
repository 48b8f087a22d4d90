"""The files that the MDIL-SS proposal prints: they are read as they stand, whatever the paths of the index hold."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import ianvs
from ianvs.exam.metrics import EvaluationRecord, picture_confusion
from ianvs.exam.metrics.label_pictures import PictureRows
from ianvs.testenv.metrics.overlap import mean_iou
from tests.errors import recorded

EXAMPLE = Path(__file__).parents[3] / "examples" / "mdil_ss_proposal"


def module(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(params=[False, True], ids=["folders of domains", "one place"])
def job(tmp_path, request):
    folder = shutil.copytree(EXAMPLE, tmp_path / "example", ignore=shutil.ignore_patterns("dataset", "workspace"))
    scenes = module("make_scenes")
    scenes.COUNTS, scenes.SIZE = {"train": 5, "test": 1}, (20, 28)
    scenes.make_scenes(folder / "dataset", one_place=request.param)
    return folder / "benchmarkingjob.yaml", request.param, tmp_path / "ws"


def test_nothing_is_wrong_with_them_and_warnings_say_what_is_assumed(job):
    path, one_place, workspace = job
    warnings = recorded(ianvs.validate(path, workspace=workspace).warnings)
    assert sorted(code for code, _ in warnings) == (
        ["doubtful-data", "doubtful-data", "renamed-key", "renamed-key"]
        if one_place
        else ["doubtful-data", "renamed-key", "renamed-key"]
    )


def test_there_are_eight_cases_and_three_rounds_with_a_test_set_each(job):
    path, one_place, workspace = job
    assert len(ianvs.plan(path, workspace=workspace)) == 8
    (exam,) = ianvs.api.exams(path, workspace=workspace).values()
    names = ["round 1", "round 2", "round 3"] if one_place else ["CS", "SYN", "CR"]
    assert [r.name for r in exam.rounds] == [t.name for t in exam.tests] == names
    assert [len(r.train) for r in exam.rounds] == [5, 5, 5]
    assert exam.dataset.name == "CS SYN CR"


def test_its_own_miou_is_the_built_in_one():
    rng = np.random.default_rng(0)
    truth, said = (rng.choice(np.array([0, 1, 2, 5, 255], np.uint8), (6, 9, 7)) for _ in range(2))
    built_in = mean_iou.function(EvaluationRecord(tuple("abcdef"), counts=picture_confusion(truth, said, 6)))
    assert module("mIoU").mIoU(PictureRows(truth), PictureRows(said)) == pytest.approx(built_in, abs=1e-12)
