"""Conversion of checkpoints by the authors of ERFNet and MDIL-SS: their names of tensors to ours, and back.

Their encoder is `initial_block` and `layers.0`, `layers.1`, ..., ours is numbered consecutively; a block's parts per
domain have the domain last in their names (`bns_1.0`), ours are grouped by domain. ERFNet without adapters has `bn1`
for `bns_1.0`, and `decoder.` for `decoder.0.` if it has one decoder.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ianvs.base.errors import PluginError, first_line, one_line, shown_path
from ianvs.testalgorithms.nets.erfnet import ErfNet

CONVOLUTIONS = {
    "conv": "conv",
    "vertical_1": "conv3x1_1",
    "horizontal_1": "conv1x3_1",
    "vertical_2": "conv3x1_2",
    "horizontal_2": "conv1x3_2",
}
UNITS = {
    "norm": "bn_ini",
    "norm_1": "bns_1",
    "norm_2": "bns_2",
    "adapter_1": "parallel_conv_1",
    "adapter_2": "parallel_conv_2",
}
NORMS = {"norm": "bn", "norm_1": "bn1", "norm_2": "bn2"}
# Prefixes of data parallel training; the first is that of the ImageNet classifier.
PREFIXES = ("module.features.", "module.")


def author_names(network: ErfNet, *, plain_units: bool = False) -> dict[str, str]:
    """Our name -> the authors' name, of every tensor of `network.state_dict()`.

    plain_units: name the encoder's units as in a network without adapters, whatever `network` is.
    """
    many_units = network.adapters and not plain_units
    many_decoders = network.adapters or len(network.decoders) > 1
    return {name: _author_name(name, many_units, many_decoders) for name in network.state_dict()}


def _author_name(name: str, many_units: bool, many_decoders: bool) -> str:
    match name.split("."):
        case ["encoder", block, part, tensor]:
            return f"{_encoder_block(block)}.{CONVOLUTIONS[part]}.{tensor}"
        case ["units", domain, block, part, tensor]:
            inner = f"{UNITS[part]}.{domain}" if many_units else NORMS.get(part, part)
            return f"{_encoder_block(block)}.{inner}.{tensor}"
        case ["decoders", domain, *parts]:
            decoder = f"decoder.{domain}" if many_decoders else "decoder"
            match parts:
                case ["classifier", tensor]:
                    return f"{decoder}.output_conv.{tensor}"
                case ["layers", layer, *_, part, tensor]:
                    return f"{decoder}.layers.{layer}.{(CONVOLUTIONS | NORMS)[part]}.{tensor}"
    raise AssertionError(f"a tensor of ErfNet that has no name with its authors: {name}")


def _encoder_block(index: str) -> str:
    return "encoder.initial_block" if index == "0" else f"encoder.layers.{int(index) - 1}"


def read_checkpoint(path: Path | str) -> dict[str, Tensor]:
    """Return the tensors in a file that the authors' training wrote, on the CPU, without a prefix in their names."""
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise PluginError(f"{shown_path(path)}: there is no such checkpoint.", code="missing-file") from None
    except Exception as error:  # torch.load may raise EOFError, RuntimeError, UnpicklingError, ...
        raise PluginError(
            f"{shown_path(path)} can't be read as a checkpoint of PyTorch: {first_line(error)}", code="unreadable-file"
        ) from error
    state = saved.get("state_dict", saved) if isinstance(saved, dict) else saved
    if not isinstance(state, dict) or not any(isinstance(value, Tensor) for value in state.values()):
        raise PluginError(
            f"{shown_path(path)} holds no tensors by name: it is no checkpoint of a network.", code="unreadable-file"
        )
    return without_prefix({name: value for name, value in state.items() if isinstance(value, Tensor)})


def without_prefix(state: Mapping[str, Any]) -> dict[str, Any]:
    """`state` with names that start at the network itself."""
    names = {}
    for name, value in state.items():
        prefix = next((prefix for prefix in PREFIXES if name.startswith(prefix)), "")
        names[name.removeprefix(prefix)] = value
    return names


def export_state(network: ErfNet) -> dict[str, Tensor]:
    """Return the network's tensors, not copied, by the authors' names without a prefix."""
    state = network.state_dict()
    return {theirs: state[ours] for ours, theirs in author_names(network).items()}


def import_state(network: ErfNet, state: Mapping[str, Tensor]) -> None:
    """Load a whole checkpoint with the authors' names. Raises PluginError, and changes nothing, unless all tensors fit.

    Counters of batches may be missing: they came with PyTorch 0.4.1, and nothing here depends on them. The classifier
    of ERFNet's encoder, `encoder.output_conv`, is ignored.
    """
    state = without_prefix(state)
    wanted = author_names(network)
    unexpected = sorted(
        name for name in set(state) - set(wanted.values()) if not name.startswith("encoder.output_conv.")
    )
    _copy(network, wanted, state, unexpected)


def import_encoder(network: ErfNet, state: Mapping[str, Tensor], *, norms: bool = False) -> list[str]:
    """Load the encoder of an ERFNet, such as the one that its authors trained on ImageNet.

    norms=False loads only the shared convolutions: that is how MDIL-SS starts, since the names of its batch
    normalisations differ from those of ERFNet (train_RAPFT_step1.py). norms=True also loads these, as in the authors'
    single-task training; with adapters they go to domain 0.

    Returns the authors' names of the checkpoint's other tensors, which are ignored.
    """
    state = without_prefix(state)
    parts = ("encoder.", "units.0.") if norms else ("encoder.",)
    adapters = ("adapter_1", "adapter_2")
    wanted = {
        ours: theirs
        for ours, theirs in author_names(network, plain_units=True).items()
        if ours.startswith(parts) and ours.split(".")[-2] not in adapters
    }
    _copy(network, wanted, state, [])
    return sorted(set(state) - set(wanted.values()))


def _copy(network: ErfNet, wanted: Mapping[str, str], state: Mapping[str, Tensor], unexpected: Sequence[str]) -> None:
    """Copy tensors. wanted: our name -> the authors' name."""
    missing = [name for name in wanted.values() if name not in state and not name.endswith(".num_batches_tracked")]
    values = {ours: state[theirs] for ours, theirs in wanted.items() if theirs in state}
    tensors, names = network.state_dict(), author_names(network)
    incompatibilities = [
        f"{names[ours]} is {tuple(value.shape)} there, {tuple(tensors[ours].shape)} here"
        for ours, value in values.items()
        if tensors[ours].shape != value.shape
    ]
    problems = [
        f"{problem}: {one_line(items, 6)}"
        for problem, items in (
            ("tensors that it lacks", missing),
            ("tensors that the network has no place for", unexpected),
            ("tensors of another shape", incompatibilities),
        )
        if items
    ]
    if problems:
        raise PluginError(
            f"the checkpoint does not fit this ERFNet with classes {list(network.classes)}"
            f"{' and adapters' if network.adapters else ''}; nothing was loaded.\n  " + "\n  ".join(problems) + "\n"
            "The number of domains, each one's number of classes (ignore included) and the shape of the network must "
            "be those of the checkpoint.",
            code="refused-arguments",
        )
    with torch.no_grad():
        for ours, value in values.items():
            tensors[ours].copy_(value)
