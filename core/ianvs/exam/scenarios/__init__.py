"""A Dataset and what the testenv says -> an Exam; and the objects that plugins are handed in it."""

from __future__ import annotations

from ianvs.exam.scenarios.build import build_exam, check_scenario, open_exam
from ianvs.exam.scenarios.exam import Exam, Round, Rules, Stream, TestSet
from ianvs.exam.scenarios.manifest import load_manifest, manifest, read_manifest, save_manifest
from ianvs.exam.scenarios.parts import Part
from ianvs.exam.scenarios.request import (
    Scenario,
    ScenarioRequest,
    classes_in,
    everything_asked,
    hold_out,
    named_rounds,
    refuse,
)
from ianvs.exam.scenarios.scenario_catalogue import ENTRY_POINTS, is_authors
from ianvs.exam.scenarios.views import TestView, TrainView

__all__ = [
    "ENTRY_POINTS",
    "Exam",
    "TestView",
    "TrainView",
    "Part",
    "Round",
    "Rules",
    "Scenario",
    "ScenarioRequest",
    "Stream",
    "TestSet",
    "build_exam",
    "check_scenario",
    "classes_in",
    "everything_asked",
    "hold_out",
    "is_authors",
    "load_manifest",
    "manifest",
    "named_rounds",
    "open_exam",
    "read_manifest",
    "refuse",
    "save_manifest",
]
