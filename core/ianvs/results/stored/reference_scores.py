"""Scores of reference runs, for metrics that are defined against them (IM, the survey's FWT, delta_m, Omega).

What counts of a reference is its score on each round's own test set just after that round: the diagonal of its score
matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ianvs.base.types import CaseResult, Status, TestCase

__all__ = ["ReferenceScores"]


@dataclass(frozen=True)
class _Reference:
    """vectors: by score what counts of it. damaged: files of it that can't be believed."""

    status: Status
    vectors: Mapping[str, NDArray[np.float64]]
    damaged: tuple[str, ...]


class ReferenceScores:
    """by_case: {role: id of the reference case} by id of a case.

    read: the result of one of `cases`, with the matrices of an exam's scores: two exams that share a reference may mean
    different things by a name.
    """

    def __init__(
        self,
        by_case: Mapping[str, Mapping[str, str]],
        cases: Iterable[TestCase],
        read: Callable[[TestCase, str], CaseResult],
    ) -> None:
        cases = tuple(cases)
        wanted = {reference for roles in by_case.values() for reference in roles.values()}
        self._by_case, self._read = by_case, read
        self._exams = {case.id: case.testenv for case in cases}
        self._cases = {case.id: case for case in cases if case.id in wanted}
        self._known: dict[tuple[str, str], _Reference] = {}  # by (id, exam)

    def vector(self, case_id: str, role: str, score: str) -> NDArray[np.float64] | None:
        """(T,) scores of the reference of a case in `role`; None where it has not run to its end."""
        found = self._of(case_id, role)
        return None if found is None else found.vectors.get(score)

    def damaged(self, case_id: str) -> tuple[str, ...]:
        """What of its references can't be believed."""
        found = (self._of(case_id, role) for role in self._by_case.get(case_id, {}))
        return tuple(path for one in found if one is not None for path in one.damaged)

    def waits(self, case_id: str, roles: Iterable[str]) -> bool:
        """Whether a reference in one of `roles` has still to run."""
        return any((found := self._of(case_id, role)) is not None and found.status == "unfinished" for role in roles)

    def _of(self, case_id: str, role: str) -> _Reference | None:
        reference = self._by_case.get(case_id, {}).get(role)
        if reference is None or reference not in self._cases:
            return None
        key = (reference, self._exams.get(case_id, ""))
        if key not in self._known:
            result = self._read(self._cases[reference], key[1])
            matrices = result.matrices if result.status == "finished" else {}
            vectors = {
                name: np.diagonal(matrix.values[1:]).copy()
                for name, matrix in matrices.items()
                if matrix.values.shape[0] == matrix.values.shape[1] + 1
            }
            self._known[key] = _Reference(result.status, vectors, result.damaged)
        return self._known[key]
