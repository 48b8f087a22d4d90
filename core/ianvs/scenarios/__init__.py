"""A Dataset and what the testenv says -> an Exam; and the objects that plugins are handed in it."""

from __future__ import annotations

from ianvs.scenarios.build import SCENARIOS, build_exam, check_scenario, open_exam
from ianvs.scenarios.exam import Exam, Round, Rules, Stream, TestSet
from ianvs.scenarios.holdout import hold_out
from ianvs.scenarios.manifest import load_manifest, manifest, read_manifest, save_manifest
from ianvs.scenarios.parts import Part
from ianvs.scenarios.views import TestView, TrainView

__all__ = [
    "SCENARIOS",
    "Exam",
    "TestView",
    "TrainView",
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
    "open_exam",
    "read_manifest",
    "save_manifest",
]
