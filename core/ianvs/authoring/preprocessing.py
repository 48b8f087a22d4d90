"""How images are prepared for a network, as published with its weights."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ianvs.authoring.backbones import is_hugging_face, torchvision_names
from ianvs.authoring.scaling import IMAGENET
from ianvs.base.errors import PluginError, require_known

INTERPOLATIONS = ("bilinear", "bicubic")
FILE = "preprocessor_config.json"  # of Hugging Face


PREPROCESS = ("resize", "crop", "interpolation", "scale")


def preprocess_options(preprocess: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of TorchLearner that `preprocess` stands for.

    Args:
        preprocess: resize: pixels of the shorter side, or [height, width]; crop: pixels of the square that is cut out
            of the middle; interpolation; scale.
        options: The other options. They may not repeat what `preprocess` sets.

    Raises:
        PluginError: A key is unknown, a value has a wrong type, or an option is given twice.
    """
    for key in preprocess:
        require_known("preprocess", key, PREPROCESS)
    given = {key: value for key, value in preprocess.items() if key in ("interpolation", "scale")}
    resize, crop = preprocess.get("resize"), preprocess.get("crop")
    pair = isinstance(resize, Sequence) and not isinstance(resize, str)  # BackboneChoice checks it
    for name, value in (("crop", crop), *([] if pair else [("resize", resize)])):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise PluginError(
                f"preprocess has {name} in pixels, 1 or more; it can't be {value!r}.", code="out-of-range"
            )
    if crop is not None:
        if not isinstance(resize, int) or resize < crop:
            raise PluginError(
                f"preprocess cuts a square of {crop} pixels out of images whose shorter side has `resize` pixels, "
                f"as many or more; it is {resize}.",
                code="out-of-range",
            )
        given |= {"picture_size": crop, "crop": crop / resize}
    elif resize is not None:
        given |= {"picture_size": resize, "crop": 1.0 if isinstance(resize, int) else "none"}
    if twice := [key for key in given if options[key] is not None]:
        raise PluginError(
            f"`preprocess` and `{twice[0]}` both say how images are prepared. Keep one of them.",
            code="conflicting-keys",
        )
    return given


@cache
def published(network: str, weights: str, download: bool = False) -> Mapping[str, Any]:
    """Return published options of TorchLearner, {"picture_size", "interpolation", "crop", "scale"}; {} if unknown.

    Sources: timm's `pretrained_cfg` of the network, also for weights in a file; torchvision's metadata of its own
    weights; for Hugging Face the file in the folder of the weights or of the network, or in the cache.
    """
    try:
        if network.startswith("timm/"):
            cfg = import_module("timm").get_pretrained_cfg(network.removeprefix("timm/"))
            crop = None if cfg.crop_mode == "squash" else cfg.crop_pct
            return _options(cfg.input_size[1:], cfg.interpolation, crop, cfg.mean, cfg.std)
        if is_hugging_face(network):
            return _of_hugging_face(network.removeprefix("hf/"), weights, download)
        if choices := torchvision_weights(network):
            to = choices[weights].transforms()
            side, crop = to.crop_size[0], to.crop_size[0] / to.resize_size[0]
            return _options((side, side), to.interpolation.value, crop, to.mean, to.std)
    except (ImportError, AttributeError, LookupError, OSError, ValueError):
        pass  # weights or network are missing, or not of images; loading them reports what is missing
    return {}


def torchvision_weights(network: str) -> Mapping[str, Any]:
    """Return torchvision's trained weights of its network, by name; {} for another network."""
    names = torchvision_names()
    return import_module("torchvision").models.get_model_weights(network).__members__ if network in names else {}


def _of_hugging_face(network: str, weights: str, download: bool) -> Mapping[str, Any]:
    file = next((str(path) for home in (weights, network) if (path := Path(home) / FILE).is_file()), None)
    file = file or import_module("huggingface_hub").hf_hub_download(network, FILE, local_files_only=not download)
    config = json.loads(Path(file).read_text(encoding="utf-8"))
    size, crop = _sides(config["size"]), None
    if config.get("do_center_crop"):
        large, size = size, _sides(config["crop_size"])
        crop = size[0] / large[0]
    kernel = {2: "bilinear"}.get(config["resample"], "bicubic")  # PIL's numbers
    return _options(size, kernel, crop, config["image_mean"], config["image_std"])


def _sides(size: Any) -> tuple[int, int]:
    """Return height and width of 224, {shortest_edge: 224}, {height: 224, width: 224}."""
    side = size.get("shortest_edge") if isinstance(size, Mapping) else size
    return (size["height"], size["width"]) if side is None else (side, side)


def _options(size: Sequence[int], kernel: str, crop: float | None, mean: Any, std: Any) -> Mapping[str, Any]:
    scale: Any = {"mean": [float(x) for x in mean], "std": [float(x) for x in std]}
    scale = "imagenet" if scale == IMAGENET else "symmetric" if {*scale["mean"], *scale["std"]} == {0.5} else scale
    kernel = kernel if kernel in INTERPOLATIONS else "bicubic"
    return {"picture_size": list(size), "interpolation": kernel, "crop": crop, "scale": scale}
