"""Samples with a text each."""

from __future__ import annotations

from typing import ClassVar

from ianvs.kinds.kind import Kind

__all__ = ["TextKind"]


class TextKind(Kind):
    name: ClassVar[str] = "text"
