"""Forward passes of ERFNet, plain and with adapters, against worked values.

Those of the plain network come from the original model with the same weights. Those of the network with adapters
(mdil_adapter.json) come from this implementation: they are there to notice a change.
"""

import json
import math
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import batch_norm, conv2d, conv_transpose2d, max_pool2d, relu

from ianvs.testalgorithms.nets import ErfNet, ErfNetShape
from ianvs.testalgorithms.nets.erfnet_import import author_names, export_state, import_state

GOLDEN = Path(__file__).parents[2] / "golden"
PLAIN = json.loads((GOLDEN / "mdil.json").read_text())["plain_erfnet_forward_eval"]
ADAPTERS = json.loads((GOLDEN / "mdil_adapter.json").read_text())["forward_eval"]


def filled(network):
    """`network` in float64 and evaluation mode, each tensor filled as "fill_rule" in mdil.json says."""
    network.double().eval()
    state = network.state_dict()
    for ours, key in author_names(network).items():
        tensor = state[ours]
        if not tensor.is_floating_point():
            continue
        phase = 2 * math.pi * (zlib.crc32(key.encode()) % 1000) / 1000
        base = np.sin(phase + 0.7 * np.arange(tensor.numel()))
        if tensor.dim() == 4:
            values = base * math.sqrt(0.5 / math.prod(tensor.shape[1:]))
        elif key.endswith("running_var"):
            values = 1 + 0.5 * base
        elif key.endswith("running_mean"):
            values = 0.1 * base
        elif key.endswith("weight"):
            values = 1 + 0.1 * base
        else:
            values = 0.1 * base
        tensor.copy_(torch.from_numpy(values).view_as(tensor))
    return network


def pictures():
    i = torch.arange(2 * 3 * 64 * 128, dtype=torch.float64)
    return (0.5 + 0.5 * torch.sin(0.3 * i + 0.1)).view(2, 3, 64, 128)


def statistics(logits):
    flat = logits.flatten()
    return {
        "shape": list(logits.shape),
        "mean": flat.mean().item(),
        "std": flat.std(correction=0).item(),
        "min": flat.min().item(),
        "max": flat.max().item(),
        "first": flat[:5].tolist(),
        "last": flat[-5:].tolist(),
        "argmax_hist": torch.bincount(logits.argmax(1).flatten(), minlength=logits.shape[1]).tolist(),
    }


def assert_agree(ours, worked):
    assert ours.keys() == worked.keys()
    for name, value in worked.items():
        assert ours[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_plain_erfnet_computes_what_the_original_does():
    with torch.inference_mode():
        assert_agree(statistics(filled(ErfNet([20]))(pictures())), PLAIN)


@pytest.mark.parametrize("domain", [0, 1])
def test_the_network_with_adapters_computes_what_it_used_to(domain):
    with torch.inference_mode():
        assert_agree(statistics(filled(ErfNet([20, 20], adapters=True))(pictures(), domain)), ADAPTERS[str(domain)])


def test_with_silent_adapters_a_branch_is_plain_erfnet():
    plain, adapted = filled(ErfNet([5])), ErfNet([3, 5], adapters=True).double().eval()
    state = export_state(adapted)
    renamed = {"bn": "bn_ini.1", "bn1": "bns_1.1", "bn2": "bns_2.1"}
    with torch.inference_mode():
        for name, tensor in state.items():
            if "parallel_conv" in name:
                tensor.zero_()
        for name, tensor in export_state(plain).items():
            module, *parts = name.split(".")
            if module == "encoder":
                parts = [renamed.get(part, part) for part in parts]
            else:
                parts = ["1", *parts]
            state[".".join([module, *parts])].copy_(tensor)
        torch.testing.assert_close(adapted(pictures(), 1), plain(pictures()), rtol=1e-12, atol=1e-14)
        assert adapted(pictures(), 0).shape[1] == 3


def second_implementation(state, x, t):
    """The network of Garg et al. 2022 in functions, with two early blocks and dilations 2 and 5."""

    def conv(name, x, **how):
        return conv2d(x, state[f"{name}.weight"], state[f"{name}.bias"], **how)

    def up(name, x, **how):
        return conv_transpose2d(x, state[f"{name}.weight"], state[f"{name}.bias"], stride=2, **how)

    def norm(name, x):
        mean, var, weight, bias = (state[f"{name}.{k}"] for k in ("running_mean", "running_var", "weight", "bias"))
        return batch_norm(x, mean, var, weight, bias, eps=1e-3)

    def down(name, x):
        return relu(
            norm(f"{name}.bn_ini.{t}", torch.cat([conv(f"{name}.conv", x, stride=2, padding=1), max_pool2d(x, 2)], 1))
        )

    def block(name, x, d=1, adapters=True):
        u = conv(f"{name}.conv1x3_1", relu(conv(f"{name}.conv3x1_1", x, padding=(1, 0))), padding=(0, 1))
        u = u + conv(f"{name}.parallel_conv_1.{t}", x) if adapters else u
        v = relu(norm(f"{name}.bns_1.{t}" if adapters else f"{name}.bn1", u))
        w = relu(conv(f"{name}.conv3x1_2", v, padding=(d, 0), dilation=(d, 1)))
        w = conv(f"{name}.conv1x3_2", w, padding=(0, d), dilation=(1, d))
        w = w + conv(f"{name}.parallel_conv_2.{t}", v) if adapters else w
        return relu(norm(f"{name}.bns_2.{t}" if adapters else f"{name}.bn2", w) + x)

    x = down("encoder.layers.0", down("encoder.initial_block", x))
    x = block("encoder.layers.2", block("encoder.layers.1", x))
    x = down("encoder.layers.3", x)
    x = block("encoder.layers.5", block("encoder.layers.4", x, 2), 5)
    for first in (0, 3):
        layer = f"decoder.{t}.layers"
        x = relu(norm(f"{layer}.{first}.bn", up(f"{layer}.{first}.conv", x, padding=1, output_padding=1)))
        x = block(f"{layer}.{first + 2}", block(f"{layer}.{first + 1}", x, adapters=False), adapters=False)
    return up(f"decoder.{t}.output_conv", x)


@pytest.mark.parametrize("domain", [0, 1, 2])
def test_every_branch_equals_a_second_implementation_in_functions(domain):
    shape = ErfNetShape(channels=(5, 9, 16), blocks=2, dilations=(2, 5))
    network = filled(ErfNet([4, 7, 3], shape, adapters=True))
    with torch.inference_mode():
        ours, theirs = network(pictures(), domain), second_implementation(export_state(network), pictures(), domain)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-14)


def test_memory_layout_does_not_change_what_is_computed():
    network, x = filled(ErfNet([20, 20], adapters=True)), pictures()
    with torch.inference_mode():
        contiguous = network(x, 1)
        network.to(memory_format=torch.channels_last)
        last = network(x.to(memory_format=torch.channels_last), 1)
    assert last.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(last, contiguous, rtol=1e-9, atol=1e-12)


def test_a_checkpoint_of_the_authors_makes_the_same_network():
    source = filled(ErfNet([20, 20], adapters=True))
    copy = ErfNet([20, 20], adapters=True).double().eval()
    import_state(copy, {f"module.{name}": tensor for name, tensor in export_state(source).items()})
    with torch.inference_mode():
        assert torch.equal(copy(pictures(), 1), source(pictures(), 1))
