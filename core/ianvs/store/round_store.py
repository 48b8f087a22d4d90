"""The rounds of cases: below rounds/ while a case runs, in rounds.json and predictions.zip once it has finished."""

import io
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from ianvs.base.digests import (
    CHANGED_MESSAGE,
    checksum,
    file_state,
    has_changed,
    parse_checksummed,
    read_bytes,
    unreadable_error,
)
from ianvs.base.errors import DamagedError
from ianvs.base.secrets import forms_of, redacted
from ianvs.base.types import PredictionKey, Predictions, RoundResult
from ianvs.store import earlier
from ianvs.store.answer_files import read_extras, read_predictions, read_stream, write_predictions
from ianvs.store.checksummed_json import remove, write_checksummed
from ianvs.store.files import replace_file, replace_folder, write_atomic
from ianvs.store.folder_store import FolderStore
from ianvs.store.keys import digest
from ianvs.store.round_files import PREDICTIONS, RoundFolder, StoredModule, is_evaluated, round_result

CASE, RESULT, ROUNDS, SCORES = "case.json", "result.json", "rounds.json", "scores.json"
ALL_PREDICTIONS = "predictions.zip"
LOG = "log.txt"
SIMILARITIES = "similarities.npz"

Record = Mapping[str, Any]
"""Content of a JSON file."""


class RoundStore(FolderStore):
    """Paths, files and rounds of case directories. Use `CaseStore`, which adds the rest of a case."""

    place = "cases"

    def __init__(self, workspace: Path, secrets: Iterable[str] = ()) -> None:
        """secrets: strings that no JSON file may contain; apparent secrets are hidden in any case."""
        super().__init__(workspace)
        self.redacted = partial(redacted, secrets=forms_of(secrets) if secrets else ())
        self._root = str(self.root)

    def log(self, case_id: str) -> Path:
        return self.folder(case_id) / LOG

    def files(self, case_id: str) -> Path:
        return self.folder(case_id) / "files"

    def journal(self, case_id: str, index: int) -> Path:
        """Return the path of the first predictions in round `index`, which remain after a kill."""
        return self.folder(case_id) / f"stream-{index}.journal"

    def model_folder(self, case_id: str, index: int) -> Path:
        """Return the modules saved after round `index`, if they are still stored."""
        return self.folder(case_id) / f"rounds/{index}/model"

    def scratch(self, case_id: str) -> Path:
        """Return a temporary folder, deleted at the latest when the next process takes the lock."""
        return self.folder(case_id) / ".scratch"

    @contextmanager
    def new_round(self, case_id: str, index: int) -> Iterator[RoundFolder]:
        """Context manager: a temporary folder that becomes round `index` atomically, replacing that and all later
        rounds.

        Then the model of the previous round is deleted, unless round `index` is only trained.
        """
        folder = self.folder(case_id)
        for path in folder.glob("rounds/[0-9]*"):
            if int(path.name) > index:
                remove(path)
        remove(folder / SIMILARITIES)
        with suppress(DamagedError):  # the scores of all rounds; those of the first rounds stay
            if (folder / SCORES).exists() and (stored := self._read(case_id, SCORES) or {}).get("scores"):
                self._write(case_id, SCORES, {**stored, "scores": {}}, durable=False)
        with replace_folder(folder / f"rounds/{index}") as new:
            (new / "model").mkdir()
            yield RoundFolder(new, new / "model", f"{case_id}/rounds/{index}/round.json", self.redacted)
        if index and (folder / f"rounds/{index}" / PREDICTIONS).exists():
            remove(self.model_folder(case_id, index - 1))

    def add_predictions(
        self,
        case_id: str,
        index: int,
        result: RoundResult,
        predictions: Mapping[PredictionKey, Predictions],
        stream: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Complete a round that is trained and not evaluated (RoundFolder.write). Raises DamagedError.

        result: replaces the one that was stored with the model.
        """
        path = self.folder(case_id) / f"rounds/{index}" / PREDICTIONS
        trained = self._read(case_id, _round_name(index))
        if trained is None:
            raise FileNotFoundError(f"{path.parent} is missing")
        with replace_file(path) as file:
            write_predictions(file, predictions, stream)
        with path.open("rb") as stored:
            record = {**trained, **vars(result), "predictions": checksum(stored)}
        self._write(case_id, _round_name(index), record)
        if index:
            remove(self.model_folder(case_id, index - 1))

    def complete_rounds(self, case_id: str, *, thoroughly: bool = False) -> tuple[RoundResult, ...]:
        """Return results of rounds 0, 1, ... up to the first that is missing, damaged or not evaluated.

        thoroughly: also compare the checksums of predictions, not only their size.
        """
        return self.round_results(case_id, self._complete(case_id, thoroughly=thoroughly))

    def round_results(self, case_id: str, records: Sequence[Record]) -> tuple[RoundResult, ...]:
        """Parse the content of each round.json. Raises DamagedError."""
        return tuple(
            round_result(record, f"{self._root}/{case_id}/{_round_name(index)}") for index, record in enumerate(records)
        )

    def is_complete_until(self, case_id: str, until: int) -> bool:
        """Return whether all rounds up to `until` are complete."""
        return len(self._complete(case_id)) > until

    def broken_round(self, case_id: str) -> int | None:
        """Return the first damaged round."""
        index = len(self._complete(case_id, thoroughly=True))
        try:
            record = self._read(case_id, _round_name(index))
        except DamagedError:
            return index
        return index if record is not None and is_evaluated(record) else None

    def trained_rounds(self, case_id: str) -> tuple[RoundResult, ...]:
        """Return results of rounds 0, 1, ...

        That are complete or trained, up to the first that is missing or damaged.
        """
        records: list[Record] = self._complete(case_id)
        with suppress(DamagedError):
            while (record := self._read(case_id, _round_name(len(records)))) is not None and not is_evaluated(record):
                records.append(record)
        return self.round_results(case_id, records)

    def trained_at(self, case_id: str, index: int) -> str:
        """Return when round `index` was stored, if it was trained before any was evaluated; else ""."""
        return str((self._round(case_id, index) or {}).get("trained_at", ""))

    def modules(self, case_id: str, index: int) -> tuple[StoredModule, ...] | None:
        """Return the modules after round `index`; None if they are not kept any more. Raises DamagedError."""
        folder = self.model_folder(case_id, index)
        record = self._round(case_id, index)
        if record is None or not folder.is_dir():
            return None
        for name, stored in record["files"].items():
            if _differs(folder / name, stored):
                raise DamagedError(folder / name, CHANGED_MESSAGE)
        return self.module_names(case_id, index)

    def module_names(self, case_id: str, index: int) -> tuple[StoredModule, ...]:
        """Return the modules after round `index`, even if their files are not kept any more. Raises DamagedError."""
        record = self._round(case_id, index)
        folder = self.model_folder(case_id, index)
        return () if record is None else tuple(StoredModule.from_json(module, folder) for module in record["modules"])

    def predictions(self, case_id: str, index: int) -> dict[PredictionKey, Predictions]:
        """Return predictions in and after round `index`; a test set that was not predicted is missing. Raises
        DamagedError.
        """
        with self._open_predictions(case_id, index) as file:
            return read_predictions(file)

    def stream(self, case_id: str, index: int) -> dict[str, NDArray[Any]]:
        """Return (n,) arrays of the prequential stream of round `index`, by name; empty without one. Raises
        DamagedError.
        """
        with self._open_predictions(case_id, index) as file:
            return read_stream(file)

    def extras(self, case_id: str, index: int) -> set[str]:
        """Return names of what is stored beside the labels after round `index`. Raises DamagedError."""
        with self._open_predictions(case_id, index) as file:
            return read_extras(file)

    def predictions_digest(self, case_id: str) -> str:
        """Return a digest of the predictions of all rounds."""
        return digest([record["predictions"] for record in self._complete(case_id)])

    def similarities(self, case_id: str) -> dict[PredictionKey, NDArray[np.float64]] | None:
        """Return the result of `keep_similarities`; None if it is missing or damaged."""
        try:
            stored = read_predictions(self.folder(case_id) / SIMILARITIES)
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        return {key: predictions.labels for key, predictions in stored.items()}

    def keep_similarities(self, case_id: str, similarities: Mapping[PredictionKey, NDArray[np.float64]]) -> None:
        """Store similarities of replies to the expected ones by (test set, round), if the folder is writable."""
        stream = io.BytesIO()
        write_predictions(stream, {key: Predictions(rows) for key, rows in similarities.items()})
        with suppress(OSError):
            write_atomic(self.folder(case_id) / SIMILARITIES, stream.getvalue())

    @contextmanager
    def _open_predictions(self, case_id: str, index: int) -> Iterator[IO[bytes]]:
        """Context manager: predictions.npz of a round, after comparing its checksum. Raises DamagedError."""
        all_rounds, name = self._read(case_id, ROUNDS), f"rounds/{index}/{PREDICTIONS}"
        archives = [file for file in (all_rounds or {}).get("files", ()) if file.endswith(".zip")]
        path = self.folder(case_id) / (archives[0] if archives else name)
        record = self._round(case_id, index)
        with ExitStack() as stack:
            try:
                file: IO[bytes] = stack.enter_context(path.open("rb"))
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
                raise DamagedError(path, CHANGED_MESSAGE) from error
            except OSError as error:
                raise unreadable_error(path, error) from error
            try:
                if archives:
                    file = stack.enter_context(stack.enter_context(ZipFile(file)).open(name))
                same = record is not None and checksum(file) == record.get("predictions")
            except Exception as error:  # a damaged archive raises many kinds of errors
                raise DamagedError(path, CHANGED_MESSAGE) from error
            if not same:
                raise DamagedError(path, CHANGED_MESSAGE)
            try:
                yield file
            except Exception as error:  # error of the reader, since the archive itself may be damaged
                raise DamagedError(path, CHANGED_MESSAGE) from error

    def _round(self, case_id: str, index: int) -> Record | None:
        """Return the content of one round.json, evaluated or not. Raises DamagedError."""
        record = self._read(case_id, ROUNDS)
        if record is not None:
            return record["rounds"][index] if index < len(record["rounds"]) else None
        return self._read(case_id, _round_name(index))

    def _complete(self, case_id: str, *, thoroughly: bool = False) -> list[Record]:
        """Return the content of each round.json, up to the first round with missing or changed files."""
        records: list[Record] = []
        with suppress(DamagedError):
            if (stored := self._read(case_id, ROUNDS)) is not None:
                damaged = self._differing(case_id, stored["files"], thoroughly=thoroughly)
                return [] if damaged else list(stored["rounds"])
            while (record := self._read(case_id, _round_name(len(records)))) is not None and is_evaluated(record):
                path = f"{self._root}/{case_id}/rounds/{len(records)}/{PREDICTIONS}"
                if _differs(path, record["predictions"], thoroughly=thoroughly):
                    break
                records.append(record)
        return records

    def _differing(
        self, case_id: str, files: Mapping[str, Sequence[int | str]], *, thoroughly: bool = False
    ) -> list[str]:
        """Return those of the listed `files` that are missing or changed."""
        path = f"{self._root}/{case_id}"
        return [name for name, stored in files.items() if has_changed(f"{path}/{name}", stored, thoroughly=thoroughly)]

    def join_rounds(self, case_id: str) -> None:
        """Write rounds.json and predictions.zip in place of two files for each round. They are never split again."""
        folder = self.folder(case_id)
        if self._read(case_id, ROUNDS) is None:
            records, files, path = self._complete(case_id), {}, folder / ALL_PREDICTIONS
            if records:
                with replace_file(path) as file, ZipFile(file, "w") as archive:
                    for index in range(len(records)):
                        info = ZipInfo(f"rounds/{index}/{PREDICTIONS}")
                        source = (folder / info.filename).open("rb")
                        with source, archive.open(info, "w", force_zip64=True) as member:
                            shutil.copyfileobj(source, member)
                files[path.name] = file_state(path)
            self._write(case_id, ROUNDS, {"rounds": records, "files": files})
        for path in (*folder.glob("rounds/*/round.json"), *folder.glob(f"rounds/*/{PREDICTIONS}")):
            path.unlink()
        for path in (*folder.glob("rounds/*"), folder / "rounds"):
            with suppress(OSError):  # the model of the last round stays
                path.rmdir()

    def _read(self, case_id: str, name: str) -> dict[str, Any] | None:
        # As a string: a report reads tens of thousands of files, and creating a Path takes as long as opening one.
        path = f"{self._root}/{case_id}/{name}"
        text = read_bytes(path)
        if text is not None and (value := parse_checksummed(text, f"{case_id}/{name}")) is not None:
            return value
        if text is None and name == RESULT:  # no version had it elsewhere
            return None
        value = earlier.read_earlier(self.folder(case_id), name) if name in (CASE, RESULT, ROUNDS, SCORES) else None
        if value is not None:
            return value
        if text is not None:
            raise DamagedError(Path(path), CHANGED_MESSAGE)
        return None

    def _write(self, case_id: str, name: str, value: Mapping[str, object], *, durable: bool = True) -> None:
        write_checksummed(self.folder(case_id) / name, f"{case_id}/{name}", self.redacted(value), durable=durable)


def _round_name(index: int) -> str:
    return f"rounds/{index}/round.json"


def _differs(path: Path | str, stored: Sequence[int | str], *, thoroughly: bool = True) -> bool:
    """Return whether a file is missing, or has another size or, `thoroughly`, another checksum."""
    try:
        if not thoroughly:
            return os.stat(path).st_size != stored[0]  # noqa: PTH116 - as in base/digests.py
        with open(path, "rb") as file:  # noqa: PTH123
            return checksum(file) != stored
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return True
