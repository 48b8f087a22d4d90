"""Which samples a round brings, where classes arrive over time and a sample has several labels.

A round's training labels are those of its own classes alone: see `label_sets.limited`. labels: (N, C) of 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import DataError
from ianvs.testenv.data_types.multilabel.label_sets import MultiHot

__all__ = ["containing", "exclusive_rounds", "frequency_groups", "mlcil_classes", "mlcil_rounds"]

Positions = NDArray[np.int64]


def mlcil_classes(names: Sequence[str], base: int, step: int) -> tuple[tuple[int, ...], ...]:
    """Class indices of each round: first `base` classes, then `step` at a time, in alphabetical order.

    "B40-C10" is base 40, step 10; "B0-C10" is base 0, which has rounds of 10 throughout (Dong et al. 2023, KRT).
    Raises DataError where the classes don't fill the rounds.
    """
    count = len(names)
    if step < 1 or not 0 <= base <= count or (count - base) % step:
        raise DataError(
            f"{count} classes can't be split into {base} and then {step} a round. Choose a `base` from 0 to {count} "
            "and a `step` that divides the rest."
        )
    order = sorted(range(count), key=lambda c: names[c])
    first = [tuple(order[:base])] if base else []
    return (*first, *(tuple(order[start : start + step]) for start in range(base, count, step)))


def containing(labels: MultiHot, classes: Sequence[int]) -> Positions:
    """Positions of the samples that have at least one label among the classes."""
    return np.flatnonzero(labels[:, list(classes)].any(axis=1))


def mlcil_rounds(labels: MultiHot, rounds: Sequence[Sequence[int]]) -> tuple[Positions, ...]:
    """Each round brings all samples with a label of its classes: a sample comes as often as it has labels of rounds.

    The protocol of KRT (Dong et al. 2023). Its test after a round is on the samples that contain any class seen.
    """
    return tuple(containing(labels, classes) for classes in rounds)


def exclusive_rounds(labels: MultiHot, rounds: Sequence[Sequence[int]]) -> tuple[Positions, ...]:
    """Each sample comes once, in the last round that brings one of its classes; without one, never.

    As in the streams of PRS (Kim et al. 2020) and OCDM (Liang and Li 2022), where rounds share no samples.
    """
    has = np.array([labels[:, list(classes)].any(axis=1) for classes in rounds])  # (T, N)
    last = len(has) - 1 - has[::-1].argmax(axis=0)
    return tuple(np.flatnonzero(has[k] & (last == k)) for k in range(len(has)))


def frequency_groups(counts: NDArray[np.int64], few: int = 200, many: int = 900) -> dict[str, tuple[int, ...]]:
    """Classes by their number of training samples: "majority" above `many`, "minority" below `few`, else "moderate".

    counts: (C,), such as labels.sum(axis=0). The defaults are those of COCOseq (Kim et al. 2020).
    """
    which = {"majority": counts > many, "moderate": (counts >= few) & (counts <= many), "minority": counts < few}
    return {name: tuple(np.flatnonzero(group).tolist()) for name, group in which.items()}
