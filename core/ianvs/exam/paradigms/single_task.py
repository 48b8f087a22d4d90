"""Ianvs's singletasklearning: one model learns everything at once."""

from __future__ import annotations

from typing import ClassVar

from ianvs.exam.paradigms.incremental import IncrementalLearning

__all__ = ["SingleTaskLearning"]


class SingleTaskLearning(IncrementalLearning):
    name: ClassVar[str] = "singletasklearning"
    as_one: ClassVar[bool] = True
