"""Every method against a plain PyTorch loop: the same weights, predictions and scores, bit for bit, on the CPU."""

import numpy as np
import pytest
import torch

from ianvs.testalgorithms.cumulative.basemodel import Cumulative
from ianvs.testalgorithms.ewc.basemodel import EWC
from ianvs.testalgorithms.finetune.basemodel import Finetune
from ianvs.testalgorithms.joint.basemodel import Joint
from ianvs.testalgorithms.lwf.basemodel import LwF
from ianvs.testalgorithms.replay.basemodel import Replay
from tests.testalgorithms.exam_of_arrays import digits, examine, pictures
from tests.testalgorithms.plain_loop import plain_loop, small_mlp, small_resnet

METHODS = {
    "finetune": (Finetune, {}),
    "joint": (Joint, {}),
    "cumulative": (Cumulative, {}),
    "replay": (Replay, {"capacity": 70}),
    "ewc": (EWC, {"strength": 300.0}),
    "lwf": (LwF, {"alpha": 2.0, "temperature": 2.0}),
}


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


@pytest.mark.parametrize("method", METHODS)
def test_five_rounds_of_digits_equal_a_plain_loop_bit_for_bit(method):
    learner, own = METHODS[method]
    training = {"epochs": 3, "batch_size": 32, "learning_rate": 0.05}
    exam = digits()
    ours = examine(learner(**training, **own), exam, seed=7)
    plain = plain_loop(method, exam, small_mlp, seed=7, **training, **own)
    assert_same_bits(ours, plain)
    assert ours[0][5].mean() > ours[0][0].mean()  # it learned something, so equality says something


@pytest.mark.parametrize("method", METHODS)
def test_pictures_on_a_residual_network_equal_a_plain_loop_bit_for_bit(method):
    learner, own = METHODS[method]
    training = {"epochs": 2, "batch_size": 8, "learning_rate": 0.02}
    exam = pictures()
    widths = (8, 8, 16)  # of fewer, torch corrupts memory on some CPUs (ianvs.authoring.networks)
    ours = examine(learner(network="resnet", widths=widths, **training, **own), exam, seed=3)
    plain = plain_loop(method, exam, lambda classes: small_resnet(classes, widths), seed=3, **training, **own)
    assert_same_bits(ours, plain)


@pytest.mark.parametrize("momentum, weight_decay", [(0.0, 0.0), (0.0, 1e-3), (0.9, 1e-3)])
def test_the_optimiser_settings_of_plain_sgd_are_kept_bit_for_bit(momentum, weight_decay):
    training = {"epochs": 4, "batch_size": 50, "learning_rate": 0.1, "momentum": momentum, "weight_decay": weight_decay}
    exam = digits()
    assert_same_bits(
        examine(Finetune(**training), exam, seed=1), plain_loop("finetune", exam, small_mlp, seed=1, **training)
    )
