"""The part of a round that is held out from training."""

from __future__ import annotations

from ianvs.base.errors import ConfigError, Problem
from ianvs.base.seeding import generator
from ianvs.exam.data.dataset import Dataset, Positions
from ianvs.exam.data.split import stratified_split
from ianvs.exam.scenarios.exam import Round
from ianvs.exam.scenarios.request import class_labels

__all__ = ["hold_out"]


def hold_out(exam_round: Round, dataset: Dataset, ratio: float, seed: int) -> tuple[Positions, Positions]:
    """(positions to train on, positions held out) of a round, both in the round's order.

    ratio: share to train on, 0 < ratio <= 1; 1 holds nothing out. Drawn at random, class by class where samples have
    one; every class keeps a sample to train on.
    """
    if not 0 < ratio <= 1:
        raise ConfigError([Problem(f"`train_ratio` is {ratio}; it must be above 0 and at most 1.")])
    labels = class_labels(dataset.train)
    kept, taken = stratified_split(
        None if labels is None else labels[exam_round.train],
        len(exam_round.train),
        1 - ratio,
        generator(seed, 0, f"hold-out of {exam_round.name}"),
    )
    return exam_round.train[kept], exam_round.train[taken]
