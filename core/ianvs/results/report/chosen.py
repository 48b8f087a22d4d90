"""Configurations that were chosen on other results than those that a leaderboard reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ianvs.base.types import CaseResult

__all__ = ["Chosen"]


@dataclass(frozen=True)
class Chosen:
    """results: of the chosen configurations, as they are reported; seeds: how many belong to a row.

    tried: by (testenv, algorithm), how many configurations there were. said: how it was chosen, in sentences.
    marks: by (testenv, algorithm), what a reader must know of a row's choice, in a few words.
    """

    results: Iterable[CaseResult]
    seeds: int
    tried: Mapping[tuple[str, str], int]
    said: tuple[str, ...]
    marks: Mapping[tuple[str, str], str] = field(default_factory=dict)
