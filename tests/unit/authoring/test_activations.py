"""How many samples a network is asked at once."""

import numpy as np
import pytest
import torch
from torch import nn

from ianvs.authoring import TorchLearner
from ianvs.authoring.activations import NUMBERS, samples_at_once, widest_activation


def test_the_widest_activation_is_that_of_a_layer():
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32, 5))
    x = torch.zeros(1, 3, 4, 4)
    answer, widest = widest_activation(network, lambda: network(x))
    assert widest == 8 * 4 * 4
    assert answer.shape == (1, 5)
    assert not any(layer._forward_hooks for layer in network.modules())


@pytest.mark.parametrize(("widest", "samples"), [(1, 1024), (2048, 1024), (65536, 32), (10**9, 16), (0, 1024)])
def test_as_many_samples_as_keep_it_small(widest, samples):
    assert samples_at_once(widest, torch.device("cpu")) == samples
    assert samples_at_once(widest, torch.device("cuda")) >= samples


class Pictures:
    def __init__(self):
        self.x = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (150, 3, 48, 48), dtype=np.uint8))

    def tensors(self, device="cpu"):
        return self.x.to(device)


def test_a_convolutional_network_is_asked_in_small_batches_and_answers_the_same():
    learner, data = TorchLearner(network="resnet", widths=[32]), Pictures()
    first = learner.probabilities(data, num_classes=4)
    sizes = []
    learner.network.register_forward_hook(lambda network, given, answer: sizes.append(len(answer)))
    again = learner.probabilities(data, num_classes=4)
    assert max(sizes) == NUMBERS["cpu"] // (32 * 48 * 48) < 150
    assert sum(sizes) == 150
    np.testing.assert_array_equal(first, again)
    whole = learner.network.eval()(learner.prepare(data.x)).softmax(1)
    np.testing.assert_allclose(again, whole.detach().numpy(), atol=1e-5)
