"""What is kept of an exam, once for all cases that take it: names, rules, true labels, and the manifest of samples.

Of label pictures, which are large, the first few of each test set are kept, with their pictures, for reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.store.files import read_json, replace_folder, write_json

__all__ = ["ExamRecord", "ExamStore"]

_LISTS = ("classes", "rounds", "tests", "round_digests", "test_digests", "notes", "shape")


@dataclass(frozen=True)
class ExamRecord:
    """An exam without its data: enough to score stored predictions and to write a report."""

    dataset: str
    kind: str
    classes: tuple[str, ...]
    rounds: tuple[str, ...]
    tests: tuple[str, ...]
    rules: Mapping[str, object]
    round_digests: tuple[str, ...]  # of the content of each round
    test_digests: tuple[str, ...]  # of the content of each test set
    test_classes: tuple[tuple[int, ...], ...]  # class indices of each test set
    test_earlier: tuple[tuple[int, ...] | None, ...]  # those taught before the test set's own round, if it has one
    notes: tuple[str, ...]  # what a reader of results must know of the data
    shape: tuple[int, ...]  # of one sample


class ExamStore:
    """`<workspace>/exams/<id>/`."""

    def __init__(self, workspace: Path) -> None:
        self.root = workspace / "exams"

    def folder(self, exam_id: str) -> Path:
        return self.root / exam_id

    def exists(self, exam_id: str) -> bool:
        return (self.folder(exam_id) / "exam.json").is_file()

    def write(
        self,
        exam_id: str,
        record: ExamRecord,
        truth: list[NDArray[Any]],
        manifest: Mapping[str, object],
        pictures: Sequence[NDArray[Any]] = (),
    ) -> None:
        """truth[j]: labels of test set j; of label pictures those of pictures[j], the first few of test set j."""
        with replace_folder(self.folder(exam_id)) as folder:
            np.savez(folder / "truth.npz", **_numbered(truth))  # type: ignore[arg-type]
            if pictures:
                np.savez(folder / "pictures.npz", **_numbered(pictures))  # type: ignore[arg-type]
            write_json(folder / "manifest.json", dict(manifest))
            write_json(folder / "exam.json", {**vars(record), "rules": dict(record.rules)})

    def record(self, exam_id: str) -> ExamRecord | None:
        found = read_json(self.folder(exam_id) / "exam.json")
        if found is None:
            return None
        lists = {name: tuple(found[name]) for name in _LISTS}
        for name in ("test_classes", "test_earlier"):
            lists[name] = tuple(None if part is None else tuple(part) for part in found[name])
        return ExamRecord(**{**found, **lists})

    def truth(self, exam_id: str) -> list[NDArray[Any]]:
        """[j] the labels of test set j, which nobody was handed; label pictures only of its first few samples."""
        return _read(self.folder(exam_id) / "truth.npz")

    def pictures(self, exam_id: str) -> list[NDArray[Any]]:
        """[j] (n, height, width, 3) uint8: the pictures that `truth` labels; [] for an exam without label pictures."""
        path = self.folder(exam_id) / "pictures.npz"
        return _read(path) if path.is_file() else []


def _numbered(arrays: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {str(j): array for j, array in enumerate(arrays)}


def _read(path: Path) -> list[NDArray[Any]]:
    with np.load(path, allow_pickle=False) as stored:
        return [stored[str(j)] for j in range(len(stored.files))]
