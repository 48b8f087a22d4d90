"""The transformer of configs/prompted_digits is trained on what its exam does not hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ianvs.testalgorithms.l2p.basemodel import L2P
from ianvs.testenv.prompted_digits.digit_halves import high_digits, low_digits
from ianvs.testenv.prompted_digits.pretrain_vit import pretrain
from tests.testalgorithms.exam_of_arrays import Data


def test_no_class_and_no_picture_is_in_both_halves() -> None:
    from sklearn.datasets import load_digits

    source = load_digits()
    labels = {(picture * 255 / 16).astype(np.uint8).tobytes(): y for picture, y in
              zip(source.images, source.target, strict=True)}  # fmt: skip
    asked = low_digits()
    exam = {labels[picture.tobytes()] for part in ("train", "test") for picture in asked[part][0]}
    x, y = high_digits()
    upright = x[y % 4 == 0][..., 0]
    trained = {labels[picture.tobytes()] for picture in upright}
    assert (exam, trained) == (set(range(6)), {6, 7, 8, 9})
    for quarter in range(4):
        np.testing.assert_array_equal(x[y % 4 == quarter][..., 0], np.rot90(upright, quarter, (1, 2)))


def test_what_pre_training_writes_fits_the_transformer_of_a_prompt_method(tmp_path: Path) -> None:
    pretrain(tmp_path / "vit.pt", epochs=1)
    learner = L2P(weights=str(tmp_path / "vit.pt"))
    learner.predict(Data(high_digits()[0][:4]), num_classes=6)
    assert learner.remark == ""
