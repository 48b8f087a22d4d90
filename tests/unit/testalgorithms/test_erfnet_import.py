"""Checkpoints by the names that the authors of ERFNet and MDIL-SS give to tensors."""

import re

import pytest
import torch

from ianvs.testalgorithms.nets import ErfNet, ErfNetShape
from ianvs.testalgorithms.nets.erfnet_import import (
    author_names,
    export_state,
    import_encoder,
    import_state,
    read_checkpoint,
)
from tests.errors import errors_of

TINY = ErfNetShape(channels=(4, 6, 8), blocks=1, dilations=(2,), decoder_blocks=1)
BLOCK = r"(conv3x1_[12]|conv1x3_[12])"
MDIL_NAMES = [  # every module of the authors' network, as patterns
    r"encoder\.(initial_block|layers\.(0|6))\.(conv|bn_ini\.[01])",
    rf"encoder\.layers\.([1-5]|[7-9]|1[0-4])\.({BLOCK}|(parallel_conv|bns)_[12]\.[01])",
    r"decoder\.[01]\.layers\.[03]\.(conv|bn)",
    rf"decoder\.[01]\.layers\.[1245]\.({BLOCK}|bn[12])",
    r"decoder\.[01]\.output_conv",
]
TENSOR = r"\.(weight|bias|running_mean|running_var|num_batches_tracked)"


def scrambled(network, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for tensor in network.state_dict().values():
        tensor.copy_((torch.rand(tensor.shape, generator=generator) * 9 + 1).to(tensor.dtype))
    return network


def same(a, b):
    return a.state_dict().keys() == b.state_dict().keys() and all(
        torch.equal(value, b.state_dict()[name]) for name, value in a.state_dict().items()
    )


def test_names_are_those_of_the_authors():
    with torch.device("meta"):
        names = author_names(ErfNet([20, 27], adapters=True)).values()
    patterns = [re.compile(pattern + TENSOR) for pattern in MDIL_NAMES]
    assert all(any(pattern.fullmatch(name) for pattern in patterns) for name in names)
    assert all(any(pattern.fullmatch(name) for name in names) for pattern in patterns)
    modules = {re.sub(TENSOR + "$", "", name) for name in names}
    # 3 downsamplers and 13 blocks, 2 domains; in a decoder 2 upsamplers, 4 blocks and the output
    assert len(modules) == 3 * (1 + 2) + 13 * (4 + 4 * 2) + 2 * (2 * 2 + 4 * 6 + 1)


@pytest.mark.parametrize(("adapters", "classes"), [(True, [3, 5]), (False, [3]), (False, [3, 5])])
@pytest.mark.parametrize("prefix", ["", "module.", "module.features."])
def test_what_is_exported_can_be_imported(adapters, classes, prefix):
    source = scrambled(ErfNet(classes, TINY, adapters=adapters))
    target = ErfNet(classes, TINY, adapters=adapters)
    import_state(target, {prefix + name: tensor for name, tensor in export_state(source).items()})
    assert same(source, target)


def test_old_checkpoints_without_counters_of_batches_are_welcome():
    source, target = scrambled(ErfNet([3], TINY)), ErfNet([3], TINY)
    import_state(target, {n: v for n, v in export_state(source).items() if not n.endswith("num_batches_tracked")})
    assert torch.equal(target.units[0][0].norm.running_var, source.units[0][0].norm.running_var)


def test_the_head_that_erfnet_has_for_its_encoder_alone_is_left_aside():
    source, target = scrambled(ErfNet([3], TINY)), ErfNet([3], TINY)
    import_state(target, {**export_state(source), "encoder.output_conv.weight": torch.zeros(3, 8, 1, 1)})
    assert same(source, target)


def test_a_checkpoint_that_does_not_fit_is_explained_and_changes_nothing():
    network = scrambled(ErfNet([3, 5], TINY, adapters=True))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = export_state(scrambled(ErfNet([3, 4], TINY, adapters=True), seed=1))
    del state["encoder.layers.1.bns_1.0.weight"]
    state["decoder.2.output_conv.bias"] = torch.zeros(2)
    assert errors_of(import_state, network, state) == [("refused-arguments", "")]
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_a_pretrained_encoder_gives_its_convolutions_and_no_statistics():
    pretrained = scrambled(ErfNet([3], TINY))
    state = {f"module.features.{n}": v for n, v in export_state(pretrained).items() if n.startswith("encoder.")}
    state["module.classifier.linear.weight"] = torch.zeros(1000, 8)
    network = ErfNet([3, 5], TINY, adapters=True)
    rest = {name: value.clone() for name, value in network.state_dict().items() if not name.startswith("encoder.")}
    left_aside = import_encoder(network, state)
    own = network.state_dict()
    assert same(network.encoder, pretrained.encoder)
    assert all(torch.equal(own[name], value) for name, value in rest.items())
    assert "classifier.linear.weight" in left_aside and "encoder.initial_block.bn.running_mean" in left_aside


def test_the_norms_of_a_pretrained_encoder_come_on_request():
    pretrained = scrambled(ErfNet([3], TINY))
    plain, adapted = ErfNet([7], TINY), ErfNet([7, 7], TINY, adapters=True)
    adapter = adapted.units[0][2].adapter_1.weight.clone()
    for network in (plain, adapted):
        left_aside = import_encoder(network, export_state(pretrained), norms=True)
        assert left_aside and all(name.startswith("decoder.") for name in left_aside)
        for ours, theirs in zip(network.units[0], pretrained.units[0], strict=True):
            norms = ("norm",) if hasattr(theirs, "norm") else ("norm_1", "norm_2")
            assert all(same(getattr(ours, norm), getattr(theirs, norm)) for norm in norms)
    assert torch.equal(adapted.units[0][2].adapter_1.weight, adapter)
    assert not same(adapted.units[1][0], adapted.units[0][0])


def test_an_encoder_of_another_width_is_refused():
    narrow = ErfNet([3], ErfNetShape(channels=(4, 6, 9), blocks=1, dilations=(2,)))
    assert errors_of(import_encoder, ErfNet([3], TINY), export_state(narrow)) == [("refused-arguments", "")]


def test_checkpoint_files_are_read_with_their_wrapping(tmp_path):
    source = scrambled(ErfNet([3], TINY))
    state = {f"module.{name}": tensor for name, tensor in export_state(source).items()}
    torch.save({"epoch": 150, "state_dict": state}, tmp_path / "wrapped.pth.tar")
    torch.save(state, tmp_path / "bare.pth")
    for name in ("wrapped.pth.tar", "bare.pth"):
        target = ErfNet([3], TINY)
        import_state(target, read_checkpoint(tmp_path / name))
        assert same(source, target)


def test_files_that_are_no_checkpoints_are_explained(tmp_path):
    (tmp_path / "text.pth").write_text("nothing")
    torch.save({"epoch": 3}, tmp_path / "empty.pth")
    assert errors_of(read_checkpoint, tmp_path / "text.pth") == [("unreadable-file", "")]
    assert errors_of(read_checkpoint, tmp_path / "empty.pth") == [("unreadable-file", "")]
    assert errors_of(read_checkpoint, tmp_path / "absent.pth") == [("missing-file", "")]
