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

CLASSES = 1000  # of ImageNet: what most trained heads have


@cache
def torchvision_names() -> tuple[str, ...]:
    """Return torchvision's networks for image classification."""
    import torchvision

    return tuple(torchvision.models.list_models(module=torchvision.models))


def is_library(name: str) -> bool:
    """Whether `name` is a network of torchvision, timm or Hugging Face, or the folder of one of the latter."""
    return name.startswith("timm/") or is_hugging_face(name) or name in torchvision_names()


def is_hugging_face(name: str) -> bool:
    """Whether `name` is a network of Hugging Face, or its folder."""
    return name.startswith("hf/") or (Path(name) / "config.json").is_file()


class Body(nn.Module):
    """(N, C, H, W) -> (N, D): a library's network with the identity as its head.

    Grey images are expanded to three equal channels.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        """Return (N, D)."""
        output = self.model(coloured(x))
        features: Tensor = getattr(output, "logits", getattr(output, "pooler_output", output))
        return features.flatten(1)


def coloured(x: Tensor) -> Tensor:
    """Pictures (B, 1 or 3, H, W) with three channels."""
    return x if x.shape[1] == 3 else x.expand(-1, 3, -1, -1)


def library_model(name: str, size: tuple[int, int], download: bool, *, trained: bool) -> nn.Module:
    """The network called `name`, with random weights and the head of its library.

    size: height, width of its pictures; some networks are built for one size. trained: weights will be loaded, so it
    has to be built as they were trained. Raises PluginError for an unknown name or a missing library.
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


def from_library(model: nn.Module, name: str) -> tuple[nn.Module, str, int]:
    """(body (N, C, H, W) -> (N, D), the name of the head in `model`, D). The body is `model` without its head.

    A model without a head, such as DINO's and CLIP's, is the body itself; the name is then "".
    Raises PluginError if there is a head, but not a linear one.
    """
    if isinstance(width := _without_head(model), int):
        return Body(model), "", width
    linear = [(place, module) for place, module in model.named_modules() if isinstance(module, nn.Linear)]
    config = getattr(model, "config", None)
    classes = getattr(config, "num_labels", getattr(model, "num_classes", CLASSES))
    if not linear or linear[-1][1].out_features != classes:
        raise PluginError(
            f"the head of network '{name}' can't be replaced: its last layer is not linear. Take another network.",
            code="refused-arguments",
        )
    place, head = linear[-1]
    owner, _, attribute = place.rpartition(".")
    setattr(model.get_submodule(owner), attribute, nn.Identity())
    return Body(model), place, head.in_features


def _without_head(model: nn.Module) -> int | None:
    """D of the features of a model of timm or Hugging Face that was trained without classes; None if it has a head."""
    if getattr(model, "num_classes", CLASSES) == 0:
        return getattr(model, "head_hidden_size", None) or model.num_features  # type: ignore[return-value]
    bare = type(model).__name__.endswith("Model") and not hasattr(model, "classifier")
    return getattr(getattr(model, "config", None), "hidden_size", None) if bare else None


def library_weights(name: str, weights: str, download: bool) -> Mapping[str, Tensor]:
    """Pretrained weights of the network `name`: from a file, or those that its library calls `weights`, from its cache.

    Nothing is downloaded without `download`. Raises PluginError with a remedy.
    """
    hugging_face = is_hugging_face(name)
    if hugging_face and (weights == "pretrained" or Path(weights).is_dir()):
        return _of_hugging_face(name.removeprefix("hf/") if weights == "pretrained" else weights, download)
    path = find_weights(weights)
    if path is not None:
        return read_weights(path)
    if hugging_face:
        raise _unknown(weights, name, ["pretrained"])
    if name.startswith("timm/"):
        return _of_timm(name.removeprefix("timm/"), weights, download)
    if name in torchvision_names():
        return _of_torchvision(name, weights, download)
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
        if trained:  # positions are interpolated where pictures have another size than the weights were trained with
            config = timm.get_pretrained_cfg(name)
            options = {"dynamic_img_size": config is None or tuple(config.input_size[1:]) != tuple(size)}
    model: nn.Module = timm.create_model(name, pretrained=False, **options)
    return model


def _of_timm(name: str, weights: str, download: bool) -> Mapping[str, Tensor]:
    timm = _package("timm", "vision")
    if weights != "pretrained":
        raise _unknown(weights, f"timm/{name}", ["pretrained"])
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
    raise _absent(f"timm/{name}", weights, places, file if config.url else None)


def _of_torchvision(name: str, weights: str, download: bool) -> Mapping[str, Tensor]:
    from torchvision.models import get_model_weights

    choices = get_model_weights(name)
    if weights not in choices.__members__:
        raise _unknown(weights, name, list(choices.__members__))
    member = choices[weights]
    file = Path(torch.hub.get_dir()) / "checkpoints" / Path(member.url).name
    if file.is_file():
        return read_weights(file)
    if download:
        state: Mapping[str, Tensor] = member.get_state_dict(progress=False, check_hash=True)
        return state
    raise _absent(name, weights, member.url, file)


def _hugging_face(name: str, download: bool) -> nn.Module:
    try:
        made_by, config = _described(name, download)
        model: nn.Module = made_by.from_config(config)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise PluginError(
            f"network 'hf/{name}' can't be built: {reason} Give a folder with config.json, put the model into the "
            "cache of Hugging Face, or set `download: true`.",
            code="refused-arguments",
        ) from error
    return model


def _described(name: str, download: bool) -> tuple[Any, Any]:
    """(the class that makes it, for classification or of an image tower without a head; its description)."""
    transformers = _package("transformers", "llm")
    config = transformers.AutoConfig.from_pretrained(name, local_files_only=not download)
    bare = not any("ForImageClassification" in name for name in config.architectures or ["ForImageClassification"])
    if config.model_type in ("clip", "clip_vision_model") or (config.model_type.startswith("dinov2") and bare):
        return transformers.AutoModel, getattr(config, "vision_config", config)
    return transformers.AutoModelForImageClassification, config


def _of_hugging_face(name: str, download: bool) -> Mapping[str, Tensor]:
    """By the library itself, since it gives tensors in a file other names than in the network."""
    try:
        made_by, config = _described(name, download)
        model = made_by.from_pretrained(name, config=config, local_files_only=not download)
    except (OSError, ValueError) as error:
        if Path(name).is_dir():
            raise PluginError(
                f"weights '{name}' can't be read: {' '.join(str(error).split())[:200]}", code="unreadable-file"
            ) from error
        raise _absent(f"hf/{name}", "pretrained", f"https://huggingface.co/{name}", None) from error
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


def _unknown(weights: str, name: str, choices: Sequence[str]) -> PluginError:
    return PluginError(
        f"weights '{weights}' of network '{name}' are not known.{closest(weights, choices)} There are: "
        f"{one_line(choices)}; or the path of a file, or an installed package that carries one.",
        code="invalid-choice",
    )


def _absent(name: str, weights: str, source: str, file: Path | None) -> PluginError:
    placed = "Set `weights:` to a file" if file is None else f"Put the file at {file}, set `weights:` to a file"
    return PluginError(
        f"weights '{weights}' of network '{name}' are not on this machine, and `download` is false. "
        f"{placed}, or set `download: true`. They come from {source}",
        code="missing-file",
    )
