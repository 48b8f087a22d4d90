"""Case directories: `<workspace>/cases/<id>/`.

case.json           what determines the result, and the test case in words
rounds/<k>/         round.json, predictions.npz, model/ (of the last complete round only); appears as a whole
scores/<key>.json   one metric on every (round, test set); added without running again
result.json         status, failure, when, with which software; there when the case ended
log.txt             everything that the plugin printed, and tracebacks
files/              the plugin's own place
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from ianvs.config.secrets import without_secrets
from ianvs.store.files import read_json, replace_folder, write_atomic, write_json
from ianvs.store.keys import digest
from ianvs.types import Asked, Failure, Predictions, RoundResult, Status, TestCase

__all__ = ["CaseStore", "RoundFolder", "StoredModule"]


@dataclass(frozen=True)
class StoredModule:
    """A module of an algorithm as it was after a round, with what it had been taught.

    path: where its load() finds it; None: it had nothing to save. calls: of training, so far. seen, new: class indices
    that it was taught so far, and in the last call.
    """

    kind: str
    instance: str
    path: Path | None
    calls: int = 0
    seen: tuple[int, ...] = ()
    new: tuple[int, ...] = ()


class CaseStore:
    """Reads and writes case directories below a workspace. A directory has one writer at a time: hold its `lock`."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.root = workspace / "cases"

    def folder(self, case_id: str) -> Path:
        return self.root / case_id

    def log(self, case_id: str) -> Path:
        return self.folder(case_id) / "log.txt"

    def files(self, case_id: str) -> Path:
        return self.folder(case_id) / "files"

    def lock(self, case_id: str) -> FileLock:
        """The right to write. It goes with the process that holds it, however that ends."""
        folder = self.root / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(str(folder / f"{case_id}.lock"))

    # --- identity -----------------------------------------------------------------------------------------------

    def begin(self, case: TestCase, identity: Mapping[str, object]) -> None:
        """Make the directory and remember the case under its name, so that a later plan can say what changed.

        A failure of an earlier try, and what it left half-written, are forgotten.
        """
        (self.folder(case.id) / "result.json").unlink(missing_ok=True)
        self._remove_half_written(case.id)
        write_json(self.folder(case.id) / "case.json", {"case": _as_json(case), "identity": dict(identity)})
        write_atomic(self.root / ".names" / name_key(case), case.id.encode())

    def identity(self, case_id: str) -> dict[str, Any] | None:
        found = read_json(self.folder(case_id) / "case.json")
        return None if found is None else found["identity"]

    def predecessor(self, case: TestCase) -> str | None:
        """Id under which the same algorithm, hyperparameters and seed ran last, if it was another one."""
        try:
            found = (self.root / ".names" / name_key(case)).read_text()
        except OSError:
            return None
        return found if found != case.id else None

    def all_cases(self) -> Iterator[TestCase]:
        """Every case of the workspace, in order of id."""
        for path in sorted(self.root.glob("*/case.json")):
            found = read_json(path)
            if found is not None:
                yield _case_from_json(found["case"])

    # --- rounds -------------------------------------------------------------------------------------------------

    def round_folder(self, case_id: str, index: int) -> Path:
        return self.folder(case_id) / "rounds" / str(index)

    @contextmanager
    def new_round(self, case_id: str, index: int) -> Iterator[RoundFolder]:
        """A folder to fill, which becomes round `index` as a whole; then the model of the round before is let go."""
        with replace_folder(self.round_folder(case_id, index)) as folder:
            (folder / "model").mkdir()
            yield RoundFolder(folder)
        if index:
            shutil.rmtree(self.round_folder(case_id, index - 1) / "model", ignore_errors=True)

    def complete_rounds(self, case_id: str) -> tuple[RoundResult, ...]:
        """Results of rounds 0, 1, ... up to the first that is missing."""
        found: list[RoundResult] = []
        while (stored := read_json(self.round_folder(case_id, len(found)) / "round.json")) is not None:
            stored.pop("modules")
            scores = stored["gate_scores"]
            stored["gate_scores"] = None if scores is None else tuple(scores)
            stored["examined"] = tuple(tuple(when) for when in stored["examined"])
            found.append(RoundResult(**stored))
        return tuple(found)

    def modules(self, case_id: str, index: int) -> tuple[StoredModule, ...] | None:
        """The modules after round `index`; None if they are no longer kept."""
        folder = self.round_folder(case_id, index)
        stored = read_json(folder / "round.json")
        if stored is None or not (folder / "model").is_dir():
            return None
        return tuple(
            StoredModule(
                one["kind"],
                one["instance"],
                None if one["path"] is None else folder / "model" / one["path"],
                one["calls"],
                tuple(one["seen"]),
                tuple(one["new"]),
            )
            for one in stored["modules"]
        )

    def predictions(self, case_id: str, index: int) -> dict[Asked, Predictions]:
        """What was answered in and after round `index`; a test set that could not be predicted is missing."""
        found: dict[Asked, tuple[NDArray[Any], dict[str, NDArray[Any]]]] = {}
        with np.load(self._predictions(case_id, index), allow_pickle=False) as stored:
            for name, values in stored.items():  # labels come before extras
                asked, extra = _asked_of(name)
                if extra:
                    found[asked][1][extra] = values
                else:
                    found[asked] = values, {}
        return {asked: Predictions(labels, extras) for asked, (labels, extras) in found.items()}

    def extras(self, case_id: str, index: int) -> set[str]:
        """Names of what is stored beside the labels after round `index`."""
        with np.load(self._predictions(case_id, index), allow_pickle=False) as stored:
            return {extra for _, extra in map(_asked_of, stored.files) if extra}

    def _predictions(self, case_id: str, index: int) -> Path:
        return self.round_folder(case_id, index) / "predictions.npz"

    def sweep(self, case_id: str) -> None:
        """Remove what a process that was killed left half-written, unless another process is at work there."""
        try:
            with self.lock(case_id).acquire(timeout=0):
                self._remove_half_written(case_id)
        except (Timeout, OSError):
            return

    def _remove_half_written(self, case_id: str) -> None:
        folder = self.folder(case_id)
        for path in (folder / "running.json", *folder.glob(".*"), *folder.glob("rounds/.*"), *folder.glob("scores/.*")):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    def reset(self, case_id: str) -> None:
        """Drop all rounds and scores: the case starts over. Its log stays."""
        for name in ("rounds", "scores", "files"):
            shutil.rmtree(self.folder(case_id) / name, ignore_errors=True)
        (self.folder(case_id) / "result.json").unlink(missing_ok=True)

    def own(self, link: str, case_id: str) -> None:
        """Remember that `case_id` holds the model that the chain's `link` determines."""
        write_atomic(self.root / ".lineage" / link, case_id.encode())

    def owner(self, link: str) -> str | None:
        """The case that `own` named; None if nobody has."""
        try:
            return (self.root / ".lineage" / link).read_text()
        except OSError:
            return None

    # --- scores -------------------------------------------------------------------------------------------------

    def score_path(self, case_id: str, key: str) -> Path:
        return self.folder(case_id) / "scores" / f"{key}.json"

    def has_score(self, case_id: str, key: str) -> bool:
        return self.score_path(case_id, key).is_file()

    def write_score(
        self,
        case_id: str,
        key: str,
        values: list[list[float | None]],
        details: object,
        between: Mapping[int, list[float | None]] | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """values[k][j]; details[k][j] a mapping of parts where the metric has them.

        between: [j] scores by the number of samples that had arrived, of examinations between the ends of rounds.
        about: what the score was computed with, such as the revision of an encoder.
        """
        write_json(
            self.score_path(case_id, key),
            {"values": values, "details": details, "between": dict(between or {}), "about": dict(about or {})},
        )

    def score(self, case_id: str, key: str) -> tuple[NDArray[np.float64], Any, dict[int, NDArray[np.float64]]] | None:
        """(values, details, between), as they were written."""
        found = read_json(self.score_path(case_id, key))
        if found is None:
            return None
        between = {int(n): np.array(row, dtype=float) for n, row in found.get("between", {}).items()}
        return np.array(found["values"], dtype=float), found["details"], between

    # --- while it runs ------------------------------------------------------------------------------------------

    def note_running(self, case_id: str, facts: Mapping[str, object]) -> None:
        """Say to other processes what the case is doing: round, rounds, doing, since (seconds since the epoch), pid."""
        path = self.folder(case_id) / "running.json"
        temporary = path.with_name(".running.json")
        temporary.write_text(json.dumps(dict(facts)))
        temporary.replace(path)

    def running(self, case_id: str) -> dict[str, Any] | None:
        """What the case is doing right now; None when no process holds its lock."""
        found = read_json(self.folder(case_id) / "running.json")
        if not isinstance(found, dict):
            return None
        try:
            with self.lock(case_id).acquire(timeout=0):
                return None
        except Timeout:
            return found

    # --- the end ------------------------------------------------------------------------------------------------

    def finish(self, case_id: str, facts: Mapping[str, object]) -> None:
        """The case ended well. `facts`: bound, finished_at, provenance."""
        write_json(self.folder(case_id) / "result.json", {"status": "finished", "failure": None, **facts})
        (self.folder(case_id) / "running.json").unlink(missing_ok=True)

    def fail(self, case_id: str, failure: Failure) -> None:
        log = None if failure.log is None else str(failure.log)
        write_json(self.folder(case_id) / "result.json", {"status": "failed", "failure": {**vars(failure), "log": log}})

    def result(self, case_id: str) -> dict[str, Any] | None:
        """Content of result.json, or None: the case has not ended."""
        found = read_json(self.folder(case_id) / "result.json")
        return found if isinstance(found, dict) and "status" in found else None

    def status(self, case_id: str) -> Status | None:
        """None: nothing is known of the case."""
        found = self.result(case_id)
        if found is not None:
            status: Status = found["status"]
            return status
        return "unfinished" if (self.folder(case_id) / "case.json").is_file() else None

    def failure(self, case_id: str) -> Failure | None:
        found = self.result(case_id)
        if found is None or found["failure"] is None:
            return None
        stored = found["failure"]
        return Failure(**{**stored, "log": None if stored["log"] is None else Path(stored["log"])})


@dataclass(frozen=True)
class RoundFolder:
    """A round that is being written."""

    folder: Path

    @property
    def model(self) -> Path:
        """Folder for what the plugin's save() writes."""
        return self.folder / "model"

    def fill(
        self, result: RoundResult, predictions: Mapping[Asked, Predictions], modules: Iterable[StoredModule] = ()
    ) -> None:
        """modules: with paths below `model`. An empty `model` is not kept."""
        if not any(self.model.iterdir()):
            self.model.rmdir()
        arrays: dict[str, NDArray[Any]] = {}
        for asked, said in predictions.items():
            arrays[_name_of(asked)] = said.labels
            arrays |= {_name_of(asked, extra): values for extra, values in said.extras.items()}
        np.savez(self.folder / "predictions.npz", **arrays)  # type: ignore[arg-type]
        told = [
            {**vars(one), "path": None if one.path is None else one.path.relative_to(self.model).as_posix()}
            for one in modules
        ]
        # The folder is not in its place yet, so that these need not be atomic each.
        (self.folder / "round.json").write_text(json.dumps({**vars(result), "modules": told}, indent=1))


def _name_of(asked: Asked, extra: str = "") -> str:
    """In predictions.npz: "3" is test set 3 after the round, "3@120" after 120 samples, "3 probe" something beside."""
    when = "" if asked.samples is None else f"@{asked.samples}"
    return f"{asked.test}{when}" + (f" {extra}" if extra else "")


def _asked_of(name: str) -> tuple[Asked, str]:
    """(which test set when, the extra or ""), from what `_name_of` made of them."""
    asked, _, extra = name.partition(" ")
    test, _, samples = asked.partition("@")
    return Asked(int(test), int(samples) if samples else None), extra


def name_key(case: TestCase) -> str:
    """File name under which a case is remembered whatever its plugin's source and its exam say."""
    return digest([case.algorithm, case.modules, dict(case.hyperparameters), case.seed])


def _as_json(case: TestCase) -> dict[str, object]:
    return {**vars(case), "hyperparameters": without_secrets(case.hyperparameters)}


def _case_from_json(stored: dict[str, Any]) -> TestCase:
    return TestCase(**{**stored, "modules": tuple(tuple(module) for module in stored["modules"])})
