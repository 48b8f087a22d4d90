"""What a process needs to know to examine one case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ianvs.config.spec import AlgorithmSpec, MetricSpec, TestEnvSpec
from ianvs.planning import Plan, PlannedAlgorithm
from ianvs.types import TestCase

__all__ = ["CaseRequest", "ExamRequest", "exam_request"]


@dataclass(frozen=True)
class ExamRequest:
    """An exam to be built from its data."""

    exam_id: str
    exam: TestEnvSpec
    splitting_method: str
    single_task: bool
    workspace: Path


@dataclass(frozen=True)
class CaseRequest:
    """A test case to be run, resumed or scored; which of these is found out on disk."""

    case: TestCase
    algorithm: AlgorithmSpec
    exam: ExamRequest
    identity: Mapping[str, Any]
    train_ratio: float
    scores: tuple[tuple[MetricSpec, str], ...]  # (metric, key under which its values are stored)
    threads: int
    device: str  # "auto", "cpu", "cuda"
    memory_mb: float | None
    provenance: Mapping[str, Any]


def exam_request(plan: Plan, algorithm: PlannedAlgorithm) -> ExamRequest:
    """The exam that `algorithm` takes in `plan`."""
    return ExamRequest(
        exam_id=algorithm.exam_id,
        exam=algorithm.exam_spec,
        splitting_method=algorithm.exam["splitting_method"],
        single_task=algorithm.exam["single_task"],
        workspace=plan.job.workspace,
    )
