"""Seeds, reads and restores the global random generators of a process."""

import random
import sys
from typing import Any

import numpy as np

from ianvs.base.seeding import stream_seed


def start_generators(seed: int, purpose: str, number: int = 0) -> None:
    """Seed the global random generators for a purpose and number.

    This is done before every use, so that a resumed case draws the same numbers.
    """
    seed = stream_seed(seed, number, purpose)
    random.seed(seed)
    np.random.seed(seed % 2**32)  # plugins may use the legacy generator
    torch = sys.modules.get("torch")
    if torch is not None:
        # torch.manual_seed() would note a stack trace for each kind of accelerator that is not in use: 0.3 ms.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)


def generator_states() -> tuple[Any, ...]:
    """Return the states of the global random generators."""
    torch = sys.modules.get("torch")
    if torch is None:
        return random.getstate(), np.random.get_state(), None, ()
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else ()
    return random.getstate(), np.random.get_state(), torch.get_rng_state(), gpus


def restore_generators(state: tuple[Any, ...]) -> None:
    """Restore the result of `generator_states`."""
    random.setstate(state[0])
    np.random.set_state(state[1])
    torch = sys.modules.get("torch")
    if torch is not None and state[2] is not None:
        torch.set_rng_state(state[2])
        if state[3]:
            torch.cuda.set_rng_state_all(state[3])
