"""A Dataset and what the testenv says -> an Exam; and the objects that plugins are handed in it."""

from __future__ import annotations

from core.scenarios.build import SCENARIOS, build_exam, check_scenario
from core.scenarios.columns import Part
from core.scenarios.exam import Exam, Round, Rules, Stream, TestSet
from core.scenarios.handed import HandedTest, HandedTrain
from core.scenarios.holdout import hold_out
from core.scenarios.manifest import load_manifest, manifest, read_manifest, save_manifest

__all__ = [
    "SCENARIOS",
    "Exam",
    "HandedTest",
    "HandedTrain",
    "Part",
    "Round",
    "Rules",
    "Stream",
    "TestSet",
    "build_exam",
    "check_scenario",
    "hold_out",
    "load_manifest",
    "manifest",
    "read_manifest",
    "save_manifest",
]
