"""The held-out part of a round is drawn at random, class by class; never the tail of the file (Ianvs)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ianvs.exam.scenarios import Round
from ianvs.exam.scenarios.request import hold_out
from tests.errors import errors_of
from tests.unit.exam.scenarios.small_datasets import dataset_of, streets


def round_of(positions):
    return Round("one", np.asarray(positions), (0,))


@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=60),
    ratio=st.floats(0.05, 1.0),
    seed=st.integers(0, 9),
)
def test_a_round_is_parted_without_loss_and_every_class_keeps_its_share(labels, ratio, seed):
    y = np.array(labels)
    train, valid = hold_out(round_of(np.arange(len(y))), dataset_of(y, [0]), ratio, seed)
    assert sorted([*train, *valid]) == list(range(len(y)))
    assert len(valid) <= round((1 - ratio) * len(y))
    for label in set(labels):
        members, held = np.sum(y == label), np.sum(y[valid] == label)
        assert held < members
        assert held <= np.ceil((1 - ratio) * members)
        assert held >= min(np.floor((1 - ratio) * members), members - 1)


def test_a_class_too_small_to_give_is_not_made_up_for_by_another():
    y = np.array([0] * 8 + [1])
    _, valid = hold_out(round_of(np.arange(9)), dataset_of(y, [0]), 0.25, 0)
    assert y[valid].tolist() == [0] * 6


def test_the_held_out_share_is_exact_where_classes_are_large_enough():
    train, valid = hold_out(round_of(np.arange(105)), dataset_of(list(range(5)) * 21, [0]), 0.8, 0)
    assert (len(train), len(valid)) == (84, 21)


def test_everything_is_trained_on_at_ratio_one():
    train, valid = hold_out(round_of([4, 2, 7]), dataset_of([0] * 9, [0]), 1.0, 0)
    assert train.tolist() == [4, 2, 7]
    assert len(valid) == 0


def test_it_is_not_the_tail_and_depends_on_the_seed():
    dataset = dataset_of([0] * 50 + [1] * 50, [0])
    drawn = [hold_out(round_of(np.arange(100)), dataset, 0.8, seed)[1].tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] != list(range(80, 100))
    assert sum(position < 50 for position in drawn[0]) == 10


def test_label_pictures_are_held_out_too():
    train, valid = hold_out(round_of(np.arange(6)), streets(), 0.5, 0)
    assert len(train) == len(valid) == 3


@pytest.mark.parametrize("ratio", [0.0, -0.1, 1.5])
def test_an_impossible_ratio_is_refused(ratio):
    assert errors_of(hold_out, round_of([0]), dataset_of([0], [0]), ratio, 0) == [("out-of-range", "")]
