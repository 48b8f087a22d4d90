"""The transformer of configs/pretrained_digits is trained on letters, of which its exam has none; always the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from ianvs.testalgorithms.l2p.basemodel import L2P
from ianvs.testenv.pretrained_digits.pretrain_vit import pretrain
from ianvs.testenv.pretrained_digits.printed_letters import LETTERS, printed_letters
from tests.unit.testalgorithms.exam_of_arrays import Data


def test_pictures_are_sixteenths_of_ink_of_as_many_letters_each() -> None:
    x, y = printed_letters(3)
    assert (x.shape, x.dtype, np.bincount(y).tolist()) == ((3 * len(LETTERS), 8, 8, 1), np.float32, [3] * len(LETTERS))
    np.testing.assert_array_equal(16 * x, np.round(16 * x))
    assert (x.min(), x.max()) == (0, 1)
    assert not set(LETTERS) & set("0123456789IOlo")  # what is a digit, or looks like one
    assert len(set(LETTERS)) == len(LETTERS)


def test_no_two_pictures_of_a_letter_are_equal_and_the_seed_decides() -> None:
    x, y = printed_letters(8)
    for letter in range(len(LETTERS)):
        assert len({picture.tobytes() for picture in x[y == letter]}) == 8
    np.testing.assert_array_equal(x, printed_letters(8)[0])
    assert (x != printed_letters(8, seed=1)[0]).any()


def test_letters_are_told_apart_by_their_nearest_mean_far_better_than_by_chance() -> None:
    x, y = printed_letters(40)
    asked = np.arange(len(y)) < 5 * len(LETTERS)  # `y` goes through the letters again and again
    means = np.stack([x[~asked & (y == letter)].mean(0) for letter in range(len(LETTERS))])
    said = ((x[asked][:, None] - means) ** 2).sum((2, 3, 4)).argmin(1)
    assert (said == y[asked]).mean() > 5 / len(LETTERS)


def test_what_pre_training_writes_is_the_same_each_time_and_fits_the_transformer_of_a_prompt_method(
    tmp_path: Path,
) -> None:
    for name in ("vit.pt", "again.pt"):
        pretrain(tmp_path / name, epochs=1, count=2)
    one, other = (torch.load(tmp_path / name, weights_only=True) for name in ("vit.pt", "again.pt"))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)
    learner = L2P(weights=str(tmp_path / "vit.pt"))
    learner.predict(Data(printed_letters(1)[0][:4]), num_classes=10)
    assert learner.remark == ""
