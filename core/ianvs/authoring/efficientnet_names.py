"""EfficientNet-Lite as the package efficientnet_lite_pytorch names its tensors, in the names of timm.

That package counts blocks through (`_blocks.0` to `_blocks.15` in Lite0) and names them after their roles; timm groups
them by stage and depth (`blocks.1.0`). The widths tell where a stage begins: a stage's first block changes them. Both
compute the same function: "same" padding as in TensorFlow, ReLU6, batch normalisation with epsilon 1e-3.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

__all__ = ["is_efficientnet_lite", "timm_names"]

ENDS = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
EXPANDING = {  # inverted residual: 1x1 up, depthwise, 1x1 down
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
SEPARABLE = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}  # the first block


def is_efficientnet_lite(state: Mapping[str, Tensor]) -> bool:
    """Whether these are that package's names; EfficientNet itself also has squeeze-and-excitation, and is not meant."""
    return "_blocks.0._depthwise_conv.weight" in state and not any("._se_" in name for name in state)


def timm_names(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors in timm's names, for timm/tf_efficientnet_lite0 to lite4."""
    places = _places(state)
    renamed = {}
    for name, value in state.items():
        match name.split("."):
            case ["_blocks", number, part, kind]:
                parts = EXPANDING if f"_blocks.{number}._expand_conv.weight" in state else SEPARABLE
                renamed[f"blocks.{places[int(number)]}.{parts[part]}.{kind}"] = value
            case [part, kind] if part in ENDS:
                renamed[f"{ENDS[part]}.{kind}"] = value
            case _:
                renamed[name] = value
    return renamed


def _places(state: Mapping[str, Tensor]) -> dict[int, str]:
    """Block number -> timm's "stage.depth": a block begins a stage if it has not as many channels in as out.

    A stage may begin with as many as it ends with (Lite0 has none such).
    """
    places: dict[int, str] = {}
    stage, depth = -1, 0
    for number in sorted({int(name.split(".")[1]) for name in state if name.startswith("_blocks.")}):
        first = state.get(f"_blocks.{number}._expand_conv.weight", state[f"_blocks.{number}._depthwise_conv.weight"])
        inputs = first.shape[1] if f"_blocks.{number}._expand_conv.weight" in state else first.shape[0]
        begins = stage < 0 or inputs != state[f"_blocks.{number}._project_conv.weight"].shape[0]
        stage, depth = (stage + 1, 0) if begins else (stage, depth + 1)
        places[number] = f"{stage}.{depth}"
    return places
