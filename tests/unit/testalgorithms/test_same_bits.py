"""Ours against a plain PyTorch loop: the same weights, predictions and scores, bit for bit, on the CPU.

tests/nightly/conformance compares all methods, within 1e-6; here are photographs on a residual network, and options of
SGD.
"""

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.finetune.basemodel import Finetune
from tests.unit.testalgorithms.exam_of_arrays import digits, examine, pictures
from tests.unit.testalgorithms.plain_loop import plain_loop, small_mlp, small_resnet


def assert_same_bits(ours, plain):
    (R, answers, weights), (plain_R, plain_answers, plain_weights) = ours, plain
    for k, (row, plain_row) in enumerate(zip(weights, plain_weights, strict=True)):
        same = [torch.equal(a, b) for a, b in zip(row, plain_row, strict=True)]
        assert all(same), f"weights differ after round {k}: {same}"
    for row, plain_row in zip(answers, plain_answers, strict=True):
        for a, b in zip(row, plain_row, strict=True):
            assert a.dtype == np.int64
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(R, plain_R)


def test_pictures_on_a_residual_network_equal_a_plain_loop_bit_for_bit():
    training = {"epochs": 2, "batch_size": 8, "learning_rate": 0.02}
    exam = pictures()
    widths = (8, 8, 16)  # of fewer, torch corrupts memory on some CPUs (ianvs.authoring.networks)
    ours = examine(Finetune(network="resnet", widths=widths, **training), exam, seed=3)
    plain = plain_loop(exam, lambda classes: small_resnet(classes, widths), seed=3, **training)
    assert_same_bits(ours, plain)


@pytest.mark.parametrize("momentum, weight_decay", [(0.0, 0.0), (0.0, 1e-3), (0.9, 1e-3)])
def test_the_optimiser_settings_of_plain_sgd_are_kept_bit_for_bit(momentum, weight_decay):
    training = {"epochs": 4, "batch_size": 50, "learning_rate": 0.1, "momentum": momentum, "weight_decay": weight_decay}
    exam = digits()
    ours, plain = examine(Finetune(**training), exam, seed=1), plain_loop(exam, small_mlp, seed=1, **training)
    assert_same_bits(ours, plain)
    assert ours[0][5][4] > 0.5  # it learned something, so equality says something
