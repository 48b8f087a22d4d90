"""Counts of letter n-grams in a text, by their hashes.

They equal those of scikit-learn's HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4)), bit for bit. That class is
not used: importing it takes 80 MB, and it splits every occurrence of a word again.
"""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

_SHORTEST, _LONGEST = 2, 4  # letters of an n-gram; a word has a blank at either end
_COLUMNS = 1 << 20
_MOST_WORDS = 50_000  # words in the cache

LetterCounts = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Columns in ascending order, and values; the vector has length 1."""


class LetterCounter:
    """Counts letter n-grams in texts; known words are not split again."""

    def __init__(self) -> None:
        self._columns: dict[str, NDArray[np.int64]] = {}  # of the n-grams of a word

    def counts(self, text: str) -> LetterCounts:
        words = Counter(text.split())
        if len(self._columns) > _MOST_WORDS:
            self._columns.clear()
        self._learn([word for word in words if word not in self._columns])
        of_words = [self._columns[word] for word in words]
        times = np.repeat(list(words.values()), [len(letters) for letters in of_words])
        columns, at = np.unique(np.concatenate([np.empty(0, np.int64), *of_words]), return_inverse=True)
        values = np.bincount(at, weights=times, minlength=len(columns))
        return columns, values / np.sqrt((values * values).sum() or 1)

    def _learn(self, words: list[str]) -> None:
        runs = [_runs(f" {word} ") for word in words]
        columns = _hashes([run for of_word in runs for run in of_word]) % _COLUMNS
        ends = np.cumsum([len(of_word) for of_word in runs])
        self._columns |= zip(words, np.split(columns, ends[:-1]), strict=True) if words else {}


def _runs(word: str) -> list[str]:
    sizes = range(_SHORTEST, _LONGEST + 1)
    return [word[start : start + size] for size in sizes for start in range(len(word) - size + 1)]


def cosine(first: LetterCounts, second: LetterCounts) -> float:
    _, a, b = np.intersect1d(first[0], second[0], assume_unique=True, return_indices=True)
    products = first[1][a] * second[1][b]
    return float(np.add.reduceat(products, [0])[0]) if len(products) else 0.0  # in the order of additions in scipy


def _hashes(texts: list[str]) -> NDArray[np.int64]:
    """Return absolute values of MurmurHash3 (x86, 32 bits, seed 0) of texts in UTF-8 (Appleby 2011)."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    sizes = np.array([len(data) for data in encoded], dtype=np.int64)
    hashes = np.zeros(len(texts), dtype=np.uint32)
    for size in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == size)
        keys = np.frombuffer(b"".join(encoded[n] for n in which), dtype=np.uint8).reshape(-1, size)
        blocks = np.zeros((len(which), size // 4 + 1, 4), dtype=np.uint8)
        blocks.reshape(len(which), -1)[:, :size] = keys
        words = blocks.view("<u4")[:, :, 0] * np.uint32(0xCC9E2D51)
        words = _rotated(words, 15) * np.uint32(0x1B873593)
        hashed = np.zeros(len(which), dtype=np.uint32)
        for n in range(size // 4):
            hashed = _rotated(hashed ^ words[:, n], 13) * np.uint32(5) + np.uint32(0xE6546B64)
        hashed ^= words[:, -1] ^ np.uint32(size)  # the remaining 0 to 3 bytes; 0 if there are none
        hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
        hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        hashes[which] = hashed ^ (hashed >> np.uint32(16))
    return np.abs(hashes.view(np.int32).astype(np.int64))


def _rotated(words: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    rotated: NDArray[np.uint32] = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return rotated
