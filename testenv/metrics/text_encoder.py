"""Sentence encoders: finding one without the network, and turning texts into vectors."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import IanvsError
from ianvs.base.package import files_of

_MARK = "modules.json"  # every folder of a sentence-transformers model has this file
_OWNER = "sentence-transformers"  # owner of models that are named without one


@dataclass(frozen=True)
class EncoderPlace:
    """The location of a model on this machine.

    Revision: commit of a hub's model, version of a package, or digest of a folder.
    """

    folder: Path
    kind: str  # "folder", "package", "hub"
    version: str

    @cached_property
    def revision(self) -> str:
        """The version of the weights."""
        if self.kind != "folder":
            return self.version
        digest = hashlib.sha256()
        for file in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            digest.update(file.relative_to(self.folder).as_posix().encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return f"sha256:{digest.hexdigest()[:16]}"


def find_encoder(name: str, revision: str | None, beside: Path | None) -> EncoderPlace | None:
    """Find the model that `name` stands for, without the network; None if it is not on this machine.

    name: a folder (relative to `beside`, else to the working directory), an installed package that contains a model, or
    a model of the Hugging Face hub that was downloaded before. revision: of the latter.
    """
    for base in filter(None, (beside, Path.cwd())):
        if (base / name / _MARK).is_file():
            return EncoderPlace(base / name, "folder", "")
    return _of_package(name) or _of_hub(name, revision)


class Encoder:
    """A loaded sentence encoder."""

    def __init__(self, name: str, place: EncoderPlace | None, revision: str | None, device: str = "auto") -> None:
        """Load the model. place: None lets the library download `name` from the Hugging Face hub.

        Auto: a GPU, if there is one.
        """
        from sentence_transformers import SentenceTransformer

        on = None if device == "auto" else device
        try:
            if place is not None:
                self._model: Any = SentenceTransformer(str(place.folder), local_files_only=True, device=on)
            else:
                self._model = SentenceTransformer(_repository(name), revision=revision, device=on)
        except Exception as error:  # a dozen types of errors, from a broken file to a missing network
            where = f" from {place.folder}" if place is not None else ""
            raise IanvsError(f"the encoder '{name}' can't be loaded{where}: {error}", code="unreadable-file") from error
        self.device = str(self._model.device)

    def encode(self, texts: Sequence[str], batch_size: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return vectors (N, D), and (N,) whether a text was cut off because it is longer than the model can read.

        Texts are encoded in order of length, so batches have little padding; the result has the order of `texts`.
        """
        lengths = self._lengths(texts)
        order = np.argsort(lengths, kind="stable")
        sorted_texts = [texts[index] for index in order]
        embedded = self._model.encode(
            sorted_texts, batch_size=batch_size, convert_to_numpy=True, show_progress_bar=False
        )
        vectors = np.empty_like(np.asarray(embedded, dtype=np.float32))
        vectors[order] = embedded
        limit = self._model.max_seq_length
        return vectors, np.zeros(len(texts), dtype=bool) if limit is None else lengths > limit

    def _lengths(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return (N,) numbers of tokens of the whole texts, with begin and end tokens.

        0 for a model without a tokenizer.
        """
        tokenizer = getattr(self._model, "tokenizer", None)
        if not callable(tokenizer):
            return np.zeros(len(texts), dtype=np.int64)
        tokens = tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]
        return np.array([len(ids) for ids in tokens], dtype=np.int64)


def _of_package(name: str) -> EncoderPlace | None:
    package = files_of(name)
    marks = [] if package is None else [file for file in package[1] if file.name == _MARK]
    return EncoderPlace(marks[0].parent, "package", package[0]) if package and marks else None


def _of_hub(name: str, revision: str | None) -> EncoderPlace | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        file = try_to_load_from_cache(_repository(name), _MARK, revision=revision)
    except HFValidationError:
        return None
    if not isinstance(file, str):
        return None
    folder = Path(file).parent
    return EncoderPlace(folder, "hub", folder.name)  # a snapshot's folder has the name of its commit


def _repository(name: str) -> str:
    return name if "/" in name else f"{_OWNER}/{name}"
