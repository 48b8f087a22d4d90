"""The global random generators, started anew for every use, so that a resumed case draws the same numbers."""

from __future__ import annotations

import random
import sys

import numpy as np

from ianvs.base.seeding import stream_seed

__all__ = ["Seeds"]


class Seeds:
    """The random streams of one case."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def start(self, purpose: str, number: int = 0) -> None:
        """Let the global generators begin the stream of this purpose and number."""
        seed = stream_seed(self._seed, number, purpose)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # plugins may use the legacy generator
        torch = sys.modules.get("torch")
        if torch is not None:
            # torch.manual_seed() would note a stack trace for each kind of accelerator that is not in use: 0.3 ms.
            torch.default_generator.manual_seed(seed)
            if torch.cuda.is_initialized():
                torch.cuda.manual_seed_all(seed)
