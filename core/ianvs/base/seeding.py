"""Random streams by purpose.

Each use of randomness (initialisation, order of samples, memory, ...) draws from a stream of its own, seeded by
(seed, round, purpose). A part that is added later, or a case that resumes after round k, does not shift the others.
"""

import zlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_FEW, _BLOCK = 64, 256  # rounds that are asked for one by one; from there on, how many are computed at once
_POOL = 4  # words of entropy that numpy.random.SeedSequence mixes


def stream_seed(seed: int, round_: int, purpose: str) -> int:
    """A 63-bit seed for one stream. The same on every platform and in every process."""
    if _FEW <= round_ < 1 << 32:  # the chunks of a stream: one SeedSequence for each costs as much as a small layer
        return _seeds(seed & 0xFFFF_FFFF, round_ // _BLOCK, purpose)[round_ % _BLOCK]
    sequence = np.random.SeedSequence([seed & 0xFFFF_FFFF, round_, zlib.crc32(purpose.encode())])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def generator(seed: int, round_: int, purpose: str) -> np.random.Generator:
    """A numpy generator for one stream."""
    return np.random.default_rng(stream_seed(seed, round_, purpose))


@lru_cache(64)
def _seeds(seed: int, block: int, purpose: str) -> tuple[int, ...]:
    """`stream_seed` of all rounds of a block: numpy's SeedSequence, whose algorithm is fixed, for all of them at once.

    O'Neill 2015, "Developing a seed_seq alternative", with the constants of numpy.random.bit_generator.
    """
    rounds = np.arange(block * _BLOCK, (block + 1) * _BLOCK, dtype=np.uint32)
    words = [np.full_like(rounds, seed), rounds, np.full_like(rounds, zlib.crc32(purpose.encode())), 0 * rounds]
    hashed = _Hash(0x43B0D7E5, 0x931E8875)
    pool = [hashed(word) for word in words]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                mixed = np.uint32(0xCA01F9DD) * pool[target] - np.uint32(0x4973F715) * hashed(pool[source])
                pool[target] = mixed ^ (mixed >> np.uint32(16))
    drawn = _Hash(0x8B51F9DD, 0x58F38DED)
    low, high = (drawn(word).astype(np.uint64) for word in pool[:2])
    return tuple(((low | high << np.uint64(32)) >> np.uint64(1)).tolist())


class _Hash:
    """A multiplicative hash of words, whose factor is another one each time."""

    def __init__(self, start: int, factor: int) -> None:
        self._now, self._factor = start, factor

    def __call__(self, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
        words = words ^ np.uint32(self._now)
        self._now = self._now * self._factor & 0xFFFF_FFFF
        words = words * np.uint32(self._now)
        return words ^ (words >> np.uint32(16))
