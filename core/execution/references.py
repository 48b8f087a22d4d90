"""Scores of reference runs, for metrics that are defined against them (IM, survey FWT, delta_m).

A reference is an ordinary algorithm of the job that the file gives a role: `joint` (after round k, a fresh model
trained on rounds 1..k together) or `solo` (after round j, a fresh model trained on round j alone). What counts is its
score on each round's own test set just after that round: the diagonal of its score matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from core.types import CaseResult, TestCase

__all__ = ["ROLES", "References"]

ROLES = ("joint", "solo")


class References:
    """roles: algorithm by role. read: the result of one of `cases`, with its matrices; called once per reference."""

    def __init__(
        self, roles: Mapping[str, str], cases: Iterable[TestCase], read: Callable[[TestCase], CaseResult]
    ) -> None:
        wanted = set(roles.values())
        self._roles, self._read = dict(roles), read
        self._cases = {(case.algorithm, case.seed): case for case in cases if case.algorithm in wanted}
        self._known: dict[tuple[str, int], dict[str, NDArray[np.float64]]] = {}

    def vector(self, role: str, seed: int, score: str) -> NDArray[np.float64] | None:
        """(T,) scores of the reference in `role` with the same seed; None where it has not run to its end."""
        key = (self._roles.get(role, ""), seed)
        if key not in self._cases:
            return None
        if key not in self._known:
            result = self._read(self._cases[key])
            matrices = result.matrices if result.status == "finished" else {}
            self._known[key] = {
                name: np.diagonal(matrix.values[1:]).copy()
                for name, matrix in matrices.items()
                if matrix.values.shape[0] == matrix.values.shape[1] + 1
            }
        return self._known[key].get(score)
