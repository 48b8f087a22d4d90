"""Exams in tests: built from options, and compared."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ianvs.config.spec import ScenarioSpec
from ianvs.exam.data.dataset import Dataset
from ianvs.exam.scenarios import Exam, build_exam

__all__ = ["exam_of", "same_exam"]


def exam_of(dataset: Dataset, name: str, options: dict[str, Any] | None = None, **settings: Any) -> Exam:
    return build_exam(dataset, ScenarioSpec(name, options or {}), **settings)


def same_exam(one: Exam, other: Exam) -> bool:
    """Equal in everything, positions and their order included."""
    return (
        one.dataset is other.dataset
        and (one.rules, one.stream) == (other.rules, other.stream)
        and [len(one.rounds), len(one.tests)] == [len(other.rounds), len(other.tests)]
        and all(
            _same(getattr(a, field.name), getattr(b, field.name))
            for pairs in (zip(one.rounds, other.rounds, strict=True), zip(one.tests, other.tests, strict=True))
            for a, b in pairs
            for field in fields(a)
        )
    )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    return one == other and type(one) is type(other)
