"""What an exam consists of, by the names of its samples: enough to share it, and to tell two exams apart."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.scenarios.exam import Exam, Transform

__all__ = ["manifest"]


def manifest(exam: Exam) -> dict[str, Any]:
    """JSON-able: dataset, rules, and for each round and test set its classes, transformation and sample names."""
    dataset = exam.dataset

    def part(name: str, ids: NDArray[np.str_], classes: tuple[int, ...], transform: Transform | None) -> dict[str, Any]:
        return {
            "name": name,
            "classes": [dataset.classes[index] for index in classes],
            "transform": None if transform is None else repr(transform),
            "samples": ids.tolist(),
        }

    return {
        "dataset": dataset.name,
        "fingerprint": dataset.fingerprint,
        "classes": list(dataset.classes),
        "rules": asdict(exam.rules),
        "rounds": [part(r.name, dataset.train.ids[r.train], r.classes, r.transform) for r in exam.rounds],
        "tests": [part(t.name, dataset.test.ids[t.test], t.classes, t.transform) for t in exam.tests],
    }
