"""What a language model makes of the true replies, token by token, which only it can tell (teacher forcing).

The replies are shown to who answers, after everything else was asked, and what it says is taken on trust but for its
form. It is not asked where the learner itself would be shown them, because it learns while it is tested.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ianvs.base.errors import PluginError

__all__ = ["FORCED", "METHOD", "checked_forced", "forced_extras"]

METHOD = "teacher_forced"
"""Of a base model: teacher_forced(data, **context), (N, 3); `data.y` has the true replies."""
FORCED = ("right_tokens", "tokens", "log_likelihood")
"""The extras that its columns are stored under."""


def checked_forced(found: object, samples: int, who: str) -> NDArray[np.float64]:
    """(samples, 3) what a learner gave. Raises PluginError."""
    wanted = f"return ({samples}, 3) numbers: for each conversation right tokens, tokens, log-likelihood"
    if hasattr(found, "detach"):
        found = found.detach().cpu().numpy()
    try:
        array = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PluginError(f"{who} returned {type(found).__name__} ({error}): {wanted}.") from None
    if array.shape != (samples, len(FORCED)):
        raise PluginError(f"{who} returned shape {array.shape}: {wanted}.")
    right, tokens, likelihood = array.T
    counts = array[:, :2]
    wrong = ~np.isfinite(counts).all(axis=1) | (counts != np.floor(counts)).any(axis=1) | (right < 0) | (right > tokens)
    wrong |= np.isnan(likelihood) | (likelihood > 0)
    if wrong.any():
        row = [float(value) for value in array[int(np.flatnonzero(wrong)[0])]]
        form = (
            "whole numbers of which the first is not larger, and the natural log of a probability, which is at most 0"
        )
        raise PluginError(f"{who} returned {row} for a conversation: {wanted}; {form}.")
    return array


def forced_extras(array: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """The columns by name, counts as whole numbers."""
    right, tokens, likelihood = array.T
    return dict(zip(FORCED, (right.astype(np.int64), tokens.astype(np.int64), likelihood.copy()), strict=True))
