"""The folder of one round: round.json, predictions.npz, and model/ while it is kept.

round.json holds the digests of the files beside it, and of the round.json before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ianvs.base.digests import noted, sealed_text
from ianvs.base.types import Asked, Predictions, RoundResult
from ianvs.store.answer_files import write_predictions
from ianvs.store.sealed import as_record


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

    @classmethod
    def of(cls, told: Mapping[str, Any], folder: Path) -> StoredModule:
        """From what `told` made of one whose files lie in `folder` now."""
        path = None if told["path"] is None else folder / told["path"]
        return cls(told["kind"], told["instance"], path, told["calls"], tuple(told["seen"]), tuple(told["new"]))

    def told(self, folder: Path) -> dict[str, object]:
        """Ready for JSON, with the path as it is below `folder`."""
        return {**vars(self), "path": None if self.path is None else self.path.relative_to(folder).as_posix()}


@dataclass(frozen=True)
class RoundFolder:
    """A round that is being written. name: what it is sealed as. after: digest of the round before."""

    folder: Path
    name: str
    after: str

    @property
    def model(self) -> Path:
        """Folder for what the plugin's save() writes."""
        return self.folder / "model"

    def fill(
        self,
        result: RoundResult,
        predictions: Mapping[Asked, Predictions],
        modules: Iterable[StoredModule] = (),
        stream: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """modules: with paths below `model`. An empty `model` is not kept. stream: what was answered before it was
        told."""
        if not any(self.model.iterdir()):
            self.model.rmdir()
        write_predictions(self.folder / "predictions.npz", predictions, stream)
        told = [one.told(self.model) for one in modules]
        files = {path.relative_to(self.folder).as_posix(): noted(path) for path in self._files()}
        stored = {**vars(result), "modules": told, "files": files, "after": self.after}
        # The folder is not in its place yet, so that this need not be atomic.
        (self.folder / "round.json").write_text(sealed_text(stored, self.name))

    def _files(self) -> Iterator[Path]:
        """Those that are kept beside round.json; a link may lead anywhere."""
        yield self.folder / "predictions.npz"
        yield from (path for path in self.model.rglob("*") if path.is_file() and not path.is_symlink())


def round_result(stored: Mapping[str, Any], path: Path | str) -> RoundResult:
    """From the content of round.json, which lies at `path`. Raises DamagedError."""
    scores = stored["gate_scores"]
    facts = {
        **stored,
        "gate_scores": None if scores is None else tuple(scores),
        "examined": tuple(tuple(when) for when in stored["examined"]),
        "curves": {name: tuple(map(tuple, points)) for name, points in stored.get("curves", {}).items()},
    }
    return as_record(RoundResult, facts, path)


def stored_modules(stored: Mapping[str, Any], folder: Path) -> tuple[StoredModule, ...]:
    """From the content of round.json, of the round in `folder`; whether or not what they saved is still there."""
    return tuple(StoredModule.of(one, folder / "model") for one in stored["modules"])
