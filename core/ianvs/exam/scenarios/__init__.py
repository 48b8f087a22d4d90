"""Builds an Exam from a Dataset and the testenv, and the views of it that plugins receive."""

from ianvs.exam.scenarios.build import build_exam, check_scenario, open_exam
from ianvs.exam.scenarios.exam import Exam, Round, Rules, Stream, TestSet
from ianvs.exam.scenarios.manifest import load_manifest, manifest, read_manifest, save_manifest
from ianvs.exam.scenarios.request import Scenario, ScenarioRequest, classes_in, named_rounds, refuse

__all__ = [
    "Exam",
    "Round",
    "Rules",
    "Scenario",
    "ScenarioRequest",
    "Stream",
    "TestSet",
    "build_exam",
    "check_scenario",
    "classes_in",
    "load_manifest",
    "manifest",
    "named_rounds",
    "open_exam",
    "read_manifest",
    "refuse",
    "save_manifest",
]
