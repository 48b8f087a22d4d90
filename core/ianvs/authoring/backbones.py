"""Networks of torchvision, timm and Hugging Face as bodies that compute features, and their pretrained weights."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from ianvs.authoring.weight_files import find_weights, read_weights
from ianvs.base.errors import PluginError, closest, one_line

IMAGENET_CLASSES = 1000  # outputs of most pretrained heads


@cache
def torchvision_names() -> tuple[str, ...]:
    """Return torchvision's networks for image classification."""
    import torchvision

    return tuple(torchvision.models.list_models(module=torchvision.models))


def is_library(name: str) -> bool:
    """Return whether `name` is a network of torchvision, timm or Hugging Face, or the folder of one of the latter."""
    return name.startswith("timm/") or is_hugging_face(name) or name in torchvision_names()


def is_hugging_face(name: str) -> bool:
    """Return whether `name` is a network of Hugging Face, or its folder."""
    return name.startswith("hf/") or (Path(name) / "config.json").is_file()


class HeadlessNetwork(nn.Module):
    """A library's network with the identity in place of its head: (N, C, H, W) -> (N, D).

    Grey images are expanded to three equal channels.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, D)."""
        output = self.model(to_three_channels(x))
        features: Tensor = getattr(output, "logits", getattr(output, "pooler_output", output))
        return features.flatten(1)


def to_three_channels(x: Tensor) -> Tensor:
    """Expand images (B, 1 or 3, H, W) to three channels."""
    return x if x.shape[1] == 3 else x.expand(-1, 3, -1, -1)


def library_model(name: str, size: tuple[int, int], download: bool, *, trained: bool) -> nn.Module:
    """Build the network called `name`, with random weights and its library's head.

    Args:
        name: As in the hyperparameter `network`.
        size: (height, width) of the input. Some networks are built for one size.
        download: Whether the library may download the network's configuration.
        trained: Whether pretrained weights will be loaded; some architectures depend on it.

    Raises:
        PluginError: The name is unknown, or a library is missing.
    """
    if name.startswith("timm/"):
        return _timm(name.removeprefix("timm/"), size, trained)
    if name.startswith("hf/") or name not in torchvision_names():
        return _hugging_face(name.removeprefix("hf/"), download)
    from torchvision.models import get_model

    options: dict[str, Any] = {"weights": None}
    if name in ("googlenet", "inception_v3"):
        options |= {"aux_logits": False, "init_weights": True}
    if name.startswith("vit_") and size[0] == size[1] and not trained:
        options["image_size"] = size[0]
    model: nn.Module = get_model(name, **options)
    return model


def split_head(model: nn.Module, name: str) -> tuple[nn.Module, str, int]:
    """Split a library's model into body and head. The head is replaced by the identity in `model`.

    Returns:
        (body, head_name, feature_width). `head_name` is "" for a model without a head, such as DINO's and CLIP's.

    Raises:
        PluginError: The head is not a linear layer.
    """
    if isinstance(width := _headless_width(model), int):
        return HeadlessNetwork(model), "", width
    linear = [
        (name_in_model, module) for name_in_model, module in model.named_modules() if isinstance(module, nn.Linear)
    ]
    config = getattr(model, "config", None)
    classes = getattr(config, "num_labels", getattr(model, "num_classes", IMAGENET_CLASSES))
    if not linear or linear[-1][1].out_features != classes:
        raise PluginError(
            f"the head of network '{name}' can't be replaced: its last layer is not linear. Take another network.",
            code="refused-arguments",
        )
    name_in_model, head = linear[-1]
    owner, _, attribute = name_in_model.rpartition(".")
    setattr(model.get_submodule(owner), attribute, nn.Identity())
    return HeadlessNetwork(model), name_in_model, head.in_features


def _headless_width(model: nn.Module) -> int | None:
    """Return the feature width of a model that was trained without classes; None if the model has a head."""
    if getattr(model, "num_classes", IMAGENET_CLASSES) == 0:
        return getattr(model, "head_hidden_size", None) or model.num_features  # type: ignore[return-value]
    bare = type(model).__name__.endswith("Model") and not hasattr(model, "classifier")
    return getattr(getattr(model, "config", None), "hidden_size", None) if bare else None


def library_weights(name: str, weights: str, download: bool) -> Mapping[str, Tensor]:
    """Return the pretrained weights of the network `name`, from a file or from the cache of its library.

    Nothing is downloaded unless `download` is true. Raises PluginError with a remedy.
    """
    hugging_face = is_hugging_face(name)
    if hugging_face and (weights == "pretrained" or Path(weights).is_dir()):
        return _hugging_face_weights(name.removeprefix("hf/") if weights == "pretrained" else weights, download)
    path = find_weights(weights)
    if path is not None:
        return read_weights(path)
    if hugging_face:
        raise _unknown_weights_error(weights, name, ["pretrained"])
    if name.startswith("timm/"):
        return _timm_weights(name.removeprefix("timm/"), weights, download)
    if name in torchvision_names():
        return _torchvision_weights(name, weights, download)
    raise PluginError(
        f"weights '{weights}' of network '{name}': there is no such file, and no package of that name.",
        code="missing-file",
    )


def _timm(name: str, size: tuple[int, int], trained: bool) -> nn.Module:
    timm = _package("timm", "vision")
    if not timm.is_model(name):
        hint = closest(name, timm.list_models())
        raise PluginError(f"timm has no network '{name}'.{hint} timm.list_models() lists all.", code="invalid-choice")
    options: dict[str, Any] = {}
    if name.startswith(("vit_", "deit")):
        options = {"img_size": size}
        if trained:  # interpolate the position embeddings if the images differ in size from the training images
            config = timm.get_pretrained_cfg(name)
            options = {"dynamic_img_size": config is None or tuple(config.input_size[1:]) != tuple(size)}
    model: nn.Module = timm.create_model(name, pretrained=False, **options)
    return model


def _timm_weights(name: str, weights: str, download: bool) -> Mapping[str, Tensor]:
    timm = _package("timm", "vision")
    if weights != "pretrained":
        raise _unknown_weights_error(weights, f"timm/{name}", ["pretrained"])
    config = timm.get_pretrained_cfg(name)
    if config is None or not config.has_weights:
        raise PluginError(
            f"timm has no trained weights for '{name}'. Give `weights:` a file.", code="refused-arguments"
        )
    file = Path(torch.hub.get_dir()) / "checkpoints" / Path(config.url or "").name
    cached = _in_hub_cache(config.hf_hub_id) if config.hf_hub_id else None
    if cached is not None or file.is_file():
        return read_weights(cached or file)
    if download:
        state: Mapping[str, Tensor] = timm.create_model(name, pretrained=True).state_dict()
        return state
    places = f"https://huggingface.co/{config.hf_hub_id}" if config.hf_hub_id else str(config.url)
    raise _missing_weights_error(f"timm/{name}", weights, places, file if config.url else None)


def _torchvision_weights(name: str, weights: str, download: bool) -> Mapping[str, Tensor]:
    from torchvision.models import get_model_weights

    choices = get_model_weights(name)
    if weights not in choices.__members__:
        raise _unknown_weights_error(weights, name, list(choices.__members__))
    member = choices[weights]
    file = Path(torch.hub.get_dir()) / "checkpoints" / Path(member.url).name
    if file.is_file():
        return read_weights(file)
    if download:
        state: Mapping[str, Tensor] = member.get_state_dict(progress=False, check_hash=True)
        return state
    raise _missing_weights_error(name, weights, member.url, file)


def _hugging_face(name: str, download: bool) -> nn.Module:
    try:
        model_class, config = _class_and_config(name, download)
        model: nn.Module = model_class.from_config(config)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise PluginError(
            f"network 'hf/{name}' can't be built: {reason} Give a folder with config.json, put the model into the "
            "cache of Hugging Face, or set `download: true`.",
            code="refused-arguments",
        ) from error
    return model


def _class_and_config(name: str, download: bool) -> tuple[Any, Any]:
    """Return (model class, config). CLIP and headless DINOv2 have no classification head, so AutoModel builds them."""
    transformers = _package("transformers", "llm")
    config = transformers.AutoConfig.from_pretrained(name, local_files_only=not download)
    bare = not any("ForImageClassification" in name for name in config.architectures or ["ForImageClassification"])
    if config.model_type in ("clip", "clip_vision_model") or (config.model_type.startswith("dinov2") and bare):
        return transformers.AutoModel, getattr(config, "vision_config", config)
    return transformers.AutoModelForImageClassification, config


def _hugging_face_weights(name: str, download: bool) -> Mapping[str, Tensor]:
    """Load with transformers, because tensor names in the file differ from those in the network."""
    try:
        model_class, config = _class_and_config(name, download)
        model = model_class.from_pretrained(name, config=config, local_files_only=not download)
    except (OSError, ValueError) as error:
        if Path(name).is_dir():
            raise PluginError(
                f"weights '{name}' can't be read: {' '.join(str(error).split())[:200]}", code="unreadable-file"
            ) from error
        raise _missing_weights_error(f"hf/{name}", "pretrained", f"https://huggingface.co/{name}", None) from error
    state: Mapping[str, Tensor] = model.state_dict()
    return state


def _in_hub_cache(repository: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    cached = (try_to_load_from_cache(repository, file) for file in ("model.safetensors", "pytorch_model.bin"))
    return next((Path(path) for path in cached if isinstance(path, str)), None)


def _package(name: str, extra: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise PluginError(
            f"this network needs the package {name}: pip install 'ianvs-bench[{extra}]'.", code="missing-package"
        ) from None


def _unknown_weights_error(weights: str, name: str, choices: Sequence[str]) -> PluginError:
    return PluginError(
        f"unknown weights '{weights}' for network '{name}'.{closest(weights, choices)} Choices: "
        f"{one_line(choices)}; or the path of a file, or an installed package that carries one.",
        code="invalid-choice",
    )


def _missing_weights_error(name: str, weights: str, source: str, file: Path | None) -> PluginError:
    advice = "Set `weights:` to a file" if file is None else f"Put the file at {file}, set `weights:` to a file"
    return PluginError(
        f"weights '{weights}' of network '{name}' are not on this machine, and `download` is false. "
        f"{advice}, or set `download: true`. They come from {source}",
        code="missing-file",
    )
