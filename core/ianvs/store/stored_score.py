"""One metric of one case, as it is stored: scores/<key>.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["StoredScore", "score_facts", "stored_score"]


class StoredScore(NamedTuple):
    """values: (T + 1, J). details[k][j]: parts, where the metric has them. between: (J,) by the number of samples that
    had arrived. left_out: (G, J) after the last round without each group of samples; None where nothing was left out.
    """

    values: NDArray[np.float64]
    details: Sequence[Sequence[Mapping[str, float | None] | None]]
    between: Mapping[int, NDArray[np.float64]]
    left_out: NDArray[np.float64] | None


def score_facts(
    values: list[list[float | None]],
    details: object,
    between: Mapping[int, list[float | None]] | None = None,
    about: Mapping[str, str] | None = None,
    left_out: list[list[float | None]] | None = None,
) -> dict[str, object]:
    """What is written; arguments are those of CaseStore.write_score."""
    found = {"values": values, "details": details, "between": dict(between or {}), "about": dict(about or {})}
    return found | ({"left_out": left_out} if left_out else {})


def stored_score(found: Mapping[str, Any]) -> StoredScore:
    """From what was written."""
    between = {int(n): np.array(row, dtype=float) for n, row in found.get("between", {}).items()}
    without = found.get("left_out")
    left_out = np.array(without, dtype=float) if without else None
    return StoredScore(np.array(found["values"], dtype=float), found["details"], between, left_out)
