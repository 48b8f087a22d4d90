"""Configurations that were chosen on other results than those that a leaderboard reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ianvs.types import CaseResult

__all__ = ["Chosen"]


@dataclass(frozen=True)
class Chosen:
    """results: of the chosen configurations, as they are reported; seeds: how many belong to a row.

    tried: by (testenv, algorithm), how many configurations there were. said: how it was chosen, in sentences.
    """

    results: Iterable[CaseResult]
    seeds: int
    tried: Mapping[tuple[str, str], int]
    said: tuple[str, ...]
