"""What is kept of an exam, once for all cases that sit it: names, rules, true labels, and the manifest of samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.store.files import read_json, replace_folder, write_json

__all__ = ["ExamRecord", "ExamStore"]

_LISTS = ("classes", "rounds", "tests", "round_digests", "test_digests")


@dataclass(frozen=True)
class ExamRecord:
    """An exam without its data: enough to score stored predictions and to write a report."""

    dataset: str
    kind: str
    classes: tuple[str, ...]
    rounds: tuple[str, ...]
    tests: tuple[str, ...]
    rules: Mapping[str, Any]
    round_digests: tuple[str, ...] = ()  # of the content of each round
    test_digests: tuple[str, ...] = ()  # of the content of each test set


class ExamStore:
    """`<workspace>/exams/<id>/`."""

    def __init__(self, workspace: Path) -> None:
        self.root = workspace / "exams"

    def folder(self, exam_id: str) -> Path:
        return self.root / exam_id

    def exists(self, exam_id: str) -> bool:
        return (self.folder(exam_id) / "exam.json").is_file()

    def write(self, exam_id: str, record: ExamRecord, truth: list[NDArray[Any]], manifest: Mapping[str, Any]) -> None:
        """truth[j]: labels of test set j."""
        with replace_folder(self.folder(exam_id)) as folder:
            np.savez(folder / "truth.npz", **{str(j): labels for j, labels in enumerate(truth)})  # type: ignore[arg-type]
            write_json(folder / "manifest.json", dict(manifest))
            write_json(folder / "exam.json", {**vars(record), "rules": dict(record.rules)})

    def record(self, exam_id: str) -> ExamRecord | None:
        found = read_json(self.folder(exam_id) / "exam.json")
        if found is None:
            return None
        lists = {name: tuple(found[name]) for name in _LISTS}
        return ExamRecord(**{**found, **lists})

    def truth(self, exam_id: str) -> list[NDArray[Any]]:
        """[j] the labels of test set j, which nobody was handed."""
        with np.load(self.folder(exam_id) / "truth.npz", allow_pickle=False) as stored:
            return [stored[str(j)] for j in range(len(stored.files))]
