"""Samples with a text each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ianvs.kinds.class_kind import one_for_each
from ianvs.kinds.kind import WholeLabels
from ianvs.scenarios.parts import Part

__all__ = ["TextKind"]


class TextKind(WholeLabels):
    name: ClassVar[str] = "text"

    def checker(self, asked: Part, classes: int, *, unseen: bool = False) -> Callable[[object, str], Any]:
        count = len(asked.positions)
        return lambda found, where: one_for_each(found, count, where)
