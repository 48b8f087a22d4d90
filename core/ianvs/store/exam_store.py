"""Stores an exam once for all cases that use it: names, rules, true labels, and the manifest of samples.

Of segmentation masks, which are large, the first few of each test set are stored, with their images, for reports; of
conversations the user turns.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.digests import file_state, has_changed
from ianvs.base.errors import DamagedError
from ianvs.store.checksummed_json import as_record, checked, read_checksummed, write_checksummed
from ianvs.store.files import replace_folder, write_json
from ianvs.store.folder_store import FolderStore

_LISTS = ("classes", "rounds", "tests", "notes", "shape", "batches")

_SHOWN_BEFORE = {"segmentation": "label pictures", "conversation": "replies"}


@dataclass(frozen=True)
class ExamRecord:
    """An exam without its data: enough to score stored predictions and to write a report."""

    dataset: str
    kind: str
    classes: tuple[str, ...]
    rounds: tuple[str, ...]
    tests: tuple[str, ...]
    rules: Mapping[str, object]
    round_classes: tuple[tuple[int, ...], ...]  # class indices taught in each round
    test_classes: tuple[tuple[int, ...], ...]  # class indices of each test set
    test_earlier: tuple[tuple[int, ...] | None, ...]  # those taught before the test set's own round, if it has one
    notes: tuple[str, ...]  # notes on the data for readers of results
    shape: tuple[int, ...]  # of one sample
    batches: tuple[int, ...] = ()  # index of the evaluation batch of each test set; () if each has its own
    shows: str = ""  # what reports draw (ianvs.exam.data_types.DataType.shows)

    def batch(self, test: int) -> int:
        """Return the index of a test set in stored predictions and in `ExamStore.truth`."""
        return self.batches[test] if self.batches else test


class ExamStore(FolderStore):
    """`<workspace>/exams/<id>/`. exam.json contains its digest and those of the files beside it."""

    place = "exams"

    def damaged_file(self, exam_id: str, *, thoroughly: bool = False) -> str | None:
        """Return the name of a file of the exam that is missing or damaged; None if there is none.

        thoroughly: also compare checksums, not only sizes and times (ianvs.base.digests.has_changed).
        """
        try:
            stored = self._read(exam_id)
        except DamagedError:
            stored = None
        if stored is None:
            return "exam.json"
        folder = self.folder(exam_id)
        files = stored["files"].items()
        return next((name for name, before in files if has_changed(folder / name, before, thoroughly=thoroughly)), None)

    def write(
        self,
        exam_id: str,
        record: ExamRecord,
        truth: list[NDArray[Any]],
        manifest: Mapping[str, object],
        images: Sequence[NDArray[Any]] = (),
        rows: Mapping[int, NDArray[np.int64] | None] | None = None,
        columns: Sequence[Mapping[str, NDArray[Any]]] = (),
    ) -> None:
        """Store an exam.

        Args:
            exam_id: Name of its folder.
            record: Names and rules.
            truth: [i] true labels of evaluation batch i; segmentation masks only of `images[i]`.
            manifest: Names of all samples.
            images: [i] what reports show of batch i (ianvs.exam.data_types.DataType.shown).
            rows: Positions of a test set's samples in its batch, by test set; None if they are the whole batch.
            columns: [i] further columns of batch i.
        """
        with replace_folder(self.folder(exam_id)) as folder:
            np.savez(folder / "truth.npz", **_numbered(truth))  # type: ignore[arg-type]
            if images:
                np.savez(folder / "pictures.npz", **_numbered(images))  # type: ignore[arg-type]
            if parts := {str(j): positions for j, positions in (rows or {}).items() if positions is not None}:
                np.savez(folder / "rows.npz", **parts)  # type: ignore[arg-type]
            if named := {
                f"{i}/{name}": values for i, by_name in enumerate(columns) for name, values in by_name.items()
            }:
                np.savez(folder / "columns.npz", **named)  # type: ignore[arg-type]
            write_json(folder / "manifest.json", dict(manifest))
            files = {path.name: file_state(path) for path in sorted(folder.iterdir())}
            facts = {**vars(record), "rules": dict(record.rules), "sheets": record.batches, "files": files}
            del facts["batches"]  # `sheets` is its name in files of all versions
            write_checksummed(folder / "exam.json", exam_id, facts)

    def record(self, exam_id: str) -> ExamRecord | None:
        """Return the stored record; None if there is none. Raises DamagedError."""
        stored = self._read(exam_id)
        if stored is None:
            return None
        # Versions before 0.4 store neither.
        stored = {"batches": stored.get("sheets", ()), "shows": _SHOWN_BEFORE.get(stored["kind"], ""), **stored}
        lists = {name: tuple(stored[name]) for name in _LISTS}
        for name in ("round_classes", "test_classes", "test_earlier"):
            lists[name] = tuple(None if part is None else tuple(part) for part in stored.get(name, ()))
        return as_record(ExamRecord, {**stored, **lists}, self.folder(exam_id) / "exam.json")

    def truth(self, exam_id: str) -> list[NDArray[Any]]:
        """Return true labels by evaluation batch; segmentation masks only of its first few samples.

        Raises DamagedError if the file has changed.
        """
        return self._arrays(exam_id, "truth.npz")

    def rows(self, exam_id: str) -> dict[int, NDArray[np.int64]]:
        """Return positions of a test set's samples in its batch, by test set.

        Test sets that are the whole batch are left out.
        """
        stored = self._read(exam_id)
        if stored is None or "rows.npz" not in stored["files"]:
            return {}
        with np.load(checked(self.folder(exam_id) / "rows.npz", stored)) as arrays:
            return {int(name): arrays[name] for name in arrays.files}

    def columns(self, exam_id: str, batches: int) -> list[dict[str, NDArray[Any]]]:
        """Return further columns by evaluation batch and name. Raises DamagedError if the file has changed."""
        by_batch: list[dict[str, NDArray[Any]]] = [{} for _ in range(batches)]
        stored = self._read(exam_id)
        if stored is None or "columns.npz" not in stored["files"]:
            return by_batch
        with np.load(checked(self.folder(exam_id) / "columns.npz", stored), allow_pickle=False) as arrays:
            for key in arrays.files:
                batch, _, name = key.partition("/")
                by_batch[int(batch)][name] = arrays[key]
        return by_batch

    def pictures(self, exam_id: str) -> list[NDArray[Any]]:
        """Return (n, height, width, 3) uint8 by evaluation batch: the images of `truth`.

        Of conversations the user turns.

        [] if none are stored.
        """
        stored = self._read(exam_id)
        return self._arrays(exam_id, "pictures.npz") if stored and "pictures.npz" in stored["files"] else []

    def samples(self, exam_id: str) -> list[list[str]]:
        """Return names of samples by test set. Raises DamagedError if the file has changed."""
        path = checked(self.folder(exam_id) / "manifest.json", self._read(exam_id))
        return [test["samples"] for test in json.loads(path.read_bytes())["tests"]]

    def _read(self, exam_id: str) -> dict[str, Any] | None:
        return read_checksummed(self.folder(exam_id) / "exam.json", exam_id)

    def _arrays(self, exam_id: str, name: str) -> list[NDArray[Any]]:
        with np.load(checked(self.folder(exam_id) / name, self._read(exam_id)), allow_pickle=False) as arrays:
            return [arrays[str(j)] for j in range(len(arrays.files))]


def _numbered(arrays: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {str(j): array for j, array in enumerate(arrays)}
