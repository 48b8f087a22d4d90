"""Conversations and replies for tests of text scores."""

from __future__ import annotations

import numpy as np

from ianvs.exam.metrics.metric import EvaluationRecord
from ianvs.exam.metrics.packed_replies import Replies, pack_replies

__all__ = ["record", "objects"]


def objects(values):
    """(N,) object array of lists, however long they are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def record(references, replies, topics=None, further=None):
    """further: of each conversation the right replies to its last turn beside the one in `references`."""
    return EvaluationRecord(
        (),
        y_true=objects(references) if further is None else Replies(pack_replies(references, topics, further)),
        y_pred=objects(replies),
        columns={} if topics is None else {"topics": np.array(topics, dtype=str)},
    )
