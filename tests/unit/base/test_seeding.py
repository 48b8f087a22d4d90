"""Random streams: their seeds are those of numpy's SeedSequence."""

import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ianvs.base.seeding import generator, stream_seed


@given(
    seed=st.integers(-(2**40), 2**40),
    round_=st.one_of(st.integers(0, 2**34), st.sampled_from([63, 64, 255, 256, 2**32 - 1, 2**32])),
    purpose=st.text(max_size=20),
)
def test_every_seed_is_that_of_a_sequence_of_its_own(seed, round_, purpose):
    sequence = np.random.SeedSequence([seed % 2**32, round_, zlib.crc32(purpose.encode())])
    assert stream_seed(seed, round_, purpose) == int(sequence.generate_state(1, np.uint64)[0]) // 2


def test_streams_of_neighbouring_chunks_have_nothing_in_common():
    draws = {generator(0, number, purpose).random() for number in range(60, 600) for purpose in ("order", "noise")}
    assert len(draws) == 2 * 540
