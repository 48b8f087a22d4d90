"""Whether what is stored of earlier rounds can be gone on from."""

from collections.abc import Iterable, Mapping

import numpy as np

from ianvs.base.types import Asked, Predictions, RoundResult
from ianvs.exam.metrics.label_pictures import lacks_pictures


def lacking(stored: Mapping[Asked, Predictions], rounds: Iterable[RoundResult]) -> str:
    """What an earlier version did not store and is needed now; "" if nothing."""
    if any(lacks_pictures(said.extras) for said in stored.values()):
        return "of predicted label pictures an earlier version stored only counts"
    if any(round_.sealing is None for round_ in rounds):
        return "an earlier version did not note who gave the answers"
    return ""


def same_answers(now: Mapping[Asked, Predictions], before: Mapping[Asked, Predictions]) -> bool:
    """Whether everything that was answered `before` is answered alike `now`."""
    return all(
        asked in now
        and now[asked].extras.keys() == said.extras.keys()
        and np.array_equal(now[asked].labels, said.labels)
        and all(np.array_equal(now[asked].extras[name], values) for name, values in said.extras.items())
        for asked, said in before.items()
    )
