"""ERFNet's sizes, shapes and reach, as in Romera et al. 2018 and Garg et al. 2022, and adding domains."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from ianvs.testalgorithms.nets import ErfNet, ErfNetShape
from ianvs.testalgorithms.nets.erfnet_blocks import Decoder, Downsampler, OwnResidual, Residual, Upsampler
from ianvs.testalgorithms.nets.erfnet_import import author_names
from tests.errors import errors_of
from tests.marks import slow

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "mdil.json").read_text())
TINY = ErfNetShape(channels=(4, 6, 8), blocks=1, dilations=(2,), decoder_blocks=1)


def size(parameters):
    return sum(p.numel() for p in (parameters.parameters() if isinstance(parameters, nn.Module) else parameters))


def without_memory(classes, **how):
    with torch.device("meta"):
        return ErfNet(classes, **how)


@pytest.mark.parametrize("classes", [json.loads(key) for key in GOLDEN["param_counts"]])
def test_every_list_of_classes_has_the_published_number_of_parameters(classes):
    worked, network = GOLDEN["param_counts"][str(classes)], without_memory(classes, adapters=True)
    assert size(network) == worked["total"]
    assert size(network.shared_parameters()) == worked["shared"]
    for t in range(len(classes)):
        by_kind = {"rap": 0, "bn": 0}
        for name, parameter in network.units[t].named_parameters():
            by_kind["rap" if "adapter" in name else "bn"] += parameter.numel()
        assert by_kind == {"rap": worked["rap_per_domain"], "bn": worked["bn_affine_per_domain"]}
        assert size(network.decoders[t]) == worked["decoders"][t]
    assert size(network) == 1_868_252 + len(classes) * 311_584 + sum(188_912 + 65 * c for c in classes)


@pytest.mark.parametrize(("classes", "total"), [([20], 2_064_256), ([27], 2_064_711), ([20, 20, 27], 2_445_135)])
def test_plain_erfnet_has_the_published_number_of_parameters(classes, total):
    network = without_memory(classes)
    assert size(network) == total
    assert size(network.shared_parameters()) == 1_874_044


def test_one_more_domain_costs_a_quarter_of_an_erfnet():
    network = without_memory([20], adapters=True)
    before = size(network)
    assert network.add_domain(20) == 1
    assert size(network) - before == size(network.domain_parameters(1)) == 501_796
    assert (size(network) - before) / size(without_memory([20])) == pytest.approx(0.243, abs=5e-4)


def test_tensors_are_as_many_as_published():
    network = without_memory([20, 20], adapters=True)
    units = [name for name, _ in network.units[1].named_parameters()]
    assert len(list(network.shared_parameters())) == 110
    assert sum("adapter" in name for name in units) == 52
    assert sum("norm" in name for name in units) == 58
    assert len(list(network.decoders[1].parameters())) == 58
    statistics = [
        tensor
        for module in network.domain_modules(1)
        for name, tensor in module.named_buffers()
        if name.endswith(("running_mean", "running_var"))
    ]
    assert size(statistics) == 6_592


def test_every_block_has_the_published_number_of_parameters():
    network = without_memory([20], adapters=True)
    layers = [(size(layer), size(unit)) for layer, unit in zip(network.encoder, network.units[0], strict=True)]
    early, late = (49_408, 8_320 + 256), (197_120, 33_024 + 512)
    assert [sum(layers[0]), sum(layers[1]), sum(layers[7])] == [396, 7_088, 37_184]
    assert layers[2:7] == [early] * 5
    assert layers[8:] == [late] * 8
    middle, narrow = [73_920, 49_664, 49_664], [9_264, 3_200, 3_200]
    assert [size(layer) for layer in network.decoders[0].layers] == middle + narrow
    assert size(network.decoders[0].classifier) == 64 * 20 + 20


def follow(network, x, kinds, seen):
    """Run `network` with `seen(module, inputs, output)` called at each module of `kinds`."""
    handles = [m.register_forward_hook(seen) for m in network.modules() if isinstance(m, kinds)]
    try:
        return network(x, len(network.classes) - 1)
    finally:
        for handle in handles:
            handle.remove()


def test_activations_have_the_published_shapes():
    shapes = []
    network = without_memory([20, 20], adapters=True)
    blocks = (Downsampler, Residual, Upsampler)
    x = torch.empty(1, 3, 512, 1024, device="meta")
    logits = follow(network, x, blocks, lambda module, inputs, output: shapes.append(list(output.shape)))
    assert [*shapes, list(logits.shape)] == [shape for _, shape in GOLDEN["shapes_512x1024"]]


def test_dilations_and_dropout_are_those_of_the_paper():
    residuals = [layer for layer in ErfNet([20], adapters=True).encoder if isinstance(layer, Residual)]
    assert [r.vertical_2.dilation for r in residuals] == [(d, 1) for d in [1] * 5 + [2, 4, 8, 16] * 2]
    assert [r.horizontal_2.dilation for r in residuals] == [(1, d) for d in [1] * 5 + [2, 4, 8, 16] * 2]
    assert [r.dropout.p for r in residuals] == [0.03] * 5 + [0.3] * 8
    decoder = Decoder((16, 64, 128), 2, 20)
    assert not any(isinstance(module, nn.Dropout2d) for module in decoder.modules())
    assert sum(isinstance(module, OwnResidual) for module in decoder.modules()) == 4


@pytest.mark.parametrize(("adapters", "giga"), [(False, 26.61), (True, 30.10)])
def test_a_picture_costs_the_published_number_of_multiplications(adapters, giga):
    total = 0

    def count(module, inputs, output):
        nonlocal total
        places = inputs[0] if isinstance(module, nn.ConvTranspose2d) else output
        total += places[0, 0].numel() * module.weight.numel()

    network = without_memory([20], adapters=adapters)
    follow(network, torch.empty(1, 3, 512, 1024, device="meta"), (nn.Conv2d, nn.ConvTranspose2d), count)
    assert total / 1e9 == pytest.approx(giga, abs=5e-3)
    assert adapters or total == GOLDEN["macs_plain_512x1024"]


def reach(outputs_of, shape, axis):
    """First and last row (axis 2) or column (axis 3) of the picture that the centre of the output depends on.

    All weights are positive, so that nothing cancels: the gradient is 0 exactly where there is no path.
    """
    network = ErfNet([1], ErfNetShape(channels=(4, 5, 6), dropout=(0.0, 0.0))).double().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(0.1)
    x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
    output = outputs_of(network, x)
    output[0, 0].select(axis - 2, output.shape[axis] // 2).sum().backward()
    other = 5 - axis
    lines = x.grad[0].sum((0, other - 1)).nonzero().flatten()
    return [lines.min().item(), lines.max().item(), len(lines)]


def test_the_receptive_field_is_the_published_one():
    worked = GOLDEN["receptive_field"]
    assert reach(ErfNet.encode, (1, 3, 2048, 8), axis=2) == worked["encoder_vertical"]
    assert reach(ErfNet.encode, (1, 3, 8, 2048), axis=3) == worked["encoder_horizontal"]
    assert reach(ErfNet.forward, (1, 3, 2048, 8), axis=2) == worked["network_vertical"]


@pytest.mark.parametrize("adapters", [slow(False), True])
def test_a_tiny_variant_learns_on_a_cpu(adapters):
    torch.manual_seed(0)
    network = ErfNet([3], TINY, adapters=adapters)
    x = torch.rand(4, 3, 16, 24)
    y = (x.mean(1) > 0.5).long()
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        loss = nn.functional.cross_entropy(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


def test_an_added_domain_changes_nothing_of_the_others_and_lies_where_they_lie():
    network = ErfNet([3], TINY, adapters=True).double().to(memory_format=torch.channels_last).eval()
    x = torch.rand(1, 3, 16, 24, dtype=torch.float64)
    before = network(x, 0)
    network.add_domain(5)
    assert network.classes == (3, 5)
    assert torch.equal(network(x, 0), before)
    assert network(x, 1).shape == (1, 5, 16, 24)
    assert all(p.dtype == torch.float64 for p in network.parameters())
    assert network.decoders[1].layers[0].conv.weight.is_contiguous(memory_format=torch.channels_last)
    assert not any(module.training for module in network.modules())


@pytest.mark.parametrize("adapters", [False, True])
def test_every_tensor_is_shared_or_of_one_domain(adapters):
    network = ErfNet([3, 5, 2], TINY, adapters=adapters)
    parts = [list(network.shared_parameters()), *(list(network.domain_parameters(t)) for t in range(3))]
    owned = [id(p) for part in parts for p in part]
    assert sorted(owned) == sorted(id(p) for p in network.parameters())
    assert len(owned) == len(set(owned))
    assert len(set(author_names(network).values())) == len(network.state_dict())


def test_a_domain_depends_on_shared_tensors_and_its_own():
    network = ErfNet([3, 5], TINY, adapters=True)
    network(torch.rand(1, 3, 16, 24), 1).sum().backward()
    assert all(p.grad is not None for p in (*network.shared_parameters(), *network.domain_parameters(1)))
    assert all(p.grad is None for p in network.domain_parameters(0))


def test_slips_are_explained():
    network = ErfNet([3], TINY, adapters=True)
    for domain in (-1, 1):
        assert errors_of(network, torch.rand(1, 3, 16, 24), domain) == [("refused-arguments", "")]
    assert errors_of(ErfNetShape, channels=(16, 16, 32)) == [("out-of-range", "")]
    assert errors_of(network.add_domain, 0) == [("out-of-range", "")]
    assert errors_of(ErfNetShape, dropout=(0.3, 1.5)) == [("out-of-range", "")]
    assert errors_of(ErfNetShape, dilations=(0,)) == [("out-of-range", "")]


def test_pictures_of_any_size_are_padded_by_their_last_row_and_column_and_the_answer_is_cropped():
    torch.manual_seed(0)
    network = ErfNet([4], TINY).eval()
    x = torch.rand(2, 3, 20, 28)
    wider = torch.cat([x, x[:, :, :, -1:].expand(-1, -1, -1, 4)], dim=3)
    wider = torch.cat([wider, wider[:, :, -1:].expand(-1, -1, 4, -1)], dim=2)
    with torch.inference_mode():
        assert network(x).shape == (2, 4, 20, 28)
        torch.testing.assert_close(network(x), network(wider)[:, :, :20, :28], rtol=0, atol=0)
        assert network.encode(x).shape[2:] == (3, 4)
