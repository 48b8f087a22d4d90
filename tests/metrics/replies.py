"""Conversations and replies for tests of text scores."""

from __future__ import annotations

import numpy as np

from core.metrics.base import Evidence

__all__ = ["evidence", "objects"]


def objects(values):
    """(N,) object array of lists, however long they are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def evidence(references, replies, topics=None):
    return Evidence(
        (),
        y_true=objects(references),
        y_pred=objects(replies),
        topics=None if topics is None else np.array(topics, dtype=str),
    )
