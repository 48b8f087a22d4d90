"""Random streams by purpose.

Each use of randomness (initialisation, order of samples, memory, ...) draws from a stream of its own, seeded by
(seed, round, purpose). A part that is added later, or a case that resumes after round k, does not shift the others.
"""

import zlib

import numpy as np


def stream_seed(seed: int, round_: int, purpose: str) -> int:
    """Return a 63-bit seed for one stream, the same on every platform and in every process."""
    large = [round_ >> 32] if round_ >> 32 else []
    entropy = [seed & 0xFFFF_FFFF, round_ & 0xFFFF_FFFF, *large, zlib.crc32(purpose.encode())]
    sequence = np.random.SeedSequence(np.array(entropy, np.uint32))  # for uint32, SeedSequence skips its conversion
    return int(sequence.generate_state(1, np.uint64)[0]) >> 1


def generator(seed: int, round_: int, purpose: str) -> np.random.Generator:
    """Return a numpy generator for one stream."""
    return np.random.default_rng(stream_seed(seed, round_, purpose))
