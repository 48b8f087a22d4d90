"""The folder of one round: round.json, predictions.npz, and model/ while it is stored.

round.json has the size and digest of each file beside it. Without predictions the round is trained and not evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ianvs.base.digests import checksum, checksummed_text
from ianvs.base.types import PredictionKey, Predictions, RoundResult
from ianvs.store.answer_files import write_predictions
from ianvs.store.checksummed_json import as_record

SizeAndDigest = list[int | str]  # [size, digest] of a file
PREDICTIONS = "predictions.npz"


@dataclass(frozen=True)
class StoredModule:
    """A saved module of an algorithm.

    Attributes:
        kind: Type of the module.
        instance: Its name if there are several of the type.
        path: Argument of its load(); None if it saved nothing.
        calls: Number of training calls so far.
        seen: Class indices that it was trained on so far.
        new: Class indices that it was trained on in the last call.
    """

    kind: str
    instance: str
    path: Path | None
    calls: int = 0
    seen: tuple[int, ...] = ()
    new: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], folder: Path) -> StoredModule:
        """Read the result of `to_json`, for files that are now in `folder`."""
        path = None if stored["path"] is None else folder / stored["path"]
        return cls(
            stored["kind"], stored["instance"], path, stored["calls"], tuple(stored["seen"]), tuple(stored["new"])
        )

    def to_json(self, folder: Path) -> dict[str, object]:
        """Return fields for JSON, with the path relative to `folder`."""
        return {**vars(self), "path": None if self.path is None else self.path.relative_to(folder).as_posix()}


@dataclass(frozen=True)
class RoundFolder:
    """A round that is being written, in a temporary folder.

    Attributes:
        folder: The temporary folder.
        model: Folder in it for the files of the plugin's save().
        name: Name of its round.json, which is part of the content.
        redacted: Hides secrets in its round.json.
    """

    folder: Path
    model: Path
    name: str
    redacted: Callable[[Any], Any]

    def write(
        self,
        result: RoundResult,
        modules: Iterable[StoredModule] = (),
        predictions: Mapping[PredictionKey, Predictions] | None = None,
        stream: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Store the round.

        Args:
            result: What the round cost.
            modules: With paths below `model`. An empty `model` is removed.
            predictions: By test set; None for a round that is trained and not evaluated. See
                `CaseStore.add_predictions`.
            stream: Predictions of a prequential stream.
        """
        if not any(self.model.iterdir()):
            self.model.rmdir()
        files = (path for path in self.model.rglob("*") if path.is_file() and not path.is_symlink())
        record = {
            **vars(result),
            "modules": [module.to_json(self.model) for module in modules],
            "files": {path.relative_to(self.model).as_posix(): _checksum(path) for path in files},
        }
        if predictions is None:
            record["trained_at"] = datetime.now(UTC).isoformat(timespec="milliseconds")
        else:
            with (self.folder / PREDICTIONS).open("w+b") as file:
                write_predictions(file, predictions, stream)
                record["predictions"] = checksum(file)
        # The folder is renamed as a whole, so this need not be atomic.
        (self.folder / "round.json").write_text(checksummed_text(self.redacted(record), self.name))


def is_evaluated(record: Mapping[str, Any]) -> bool:
    """Return whether the round of this round.json has predictions."""
    return "predictions" in record


def round_result(record: Mapping[str, Any], path: Path | str) -> RoundResult:
    """Parse the content of round.json at `path`. Raises DamagedError."""
    scores = record["gate_scores"]
    facts = {
        **record,
        "gate_scores": None if scores is None else tuple(scores),
        "examined": tuple(tuple(when) for when in record["examined"]),
        "curves": {name: tuple(map(tuple, points)) for name, points in record.get("curves", {}).items()},
    }
    return as_record(RoundResult, facts, path)


def _checksum(path: Path) -> SizeAndDigest:
    with path.open("rb") as file:
        return checksum(file)
