"""Checks of a base model before training, from its files' headers and from a small copy of it."""

from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch

from ianvs.authoring.randomness import seeded
from ianvs.base.errors import PluginError
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.model_places import not_here, place_of
from ianvs.testalgorithms.language.models import load_tokenizer, tiny, to_tune
from ianvs.testalgorithms.language.pretrained import config_of, load_pretrained, model_class
from ianvs.testalgorithms.language.probes import require_alone, require_causal

_SMALL = 20_000_000  # number of weights that can be drawn in a second


def check_model(options: ModelOptions, batch: int = 1) -> None:
    """Refuse what `build_model` and the first round would refuse, as far as this can be seen without weights.

    Index and headers of its files are read, the adapter is created without a device, and a copy of a few layers with
    random weights shows how the network treats padding and later tokens. Nothing is downloaded.

    Args:
        options: Which model, and what of it is tuned.
        batch: How many conversations are replied to at once.

    Raises:
        PluginError: As `build_model` does.
    """
    require_gpu(options)
    if options.tiny:
        if options.tuning != "full" and options.targets != "all-linear":
            with torch.device("meta"):
                to_tune(tiny(options, load_tokenizer(options, [])), options)
        return
    place = place_of(options.base_model)
    if not place.is_here(options.revision):
        if not options.download:
            raise PluginError(
                f"base_model '{options.base_model}' can't be loaded. {not_here(options.base_model)}",
                code="missing-file",
            )
        return
    local = replace(options, download=False)
    if place.gguf is None:
        _probe(local, batch)
    if options.quantize == "none" and (place.gguf is None or options.tuning != "full"):
        to_tune(deepcopy(_outline(_of_file(local))), local)


def require_gpu(options: ModelOptions) -> None:
    """Raise PluginError where 4 bits or flash attention are asked for and there is no GPU to compute with them."""
    flash = options.attention == "flash_attention_2"
    if (options.quantize != "none" or flash) and not torch.cuda.is_available():
        setting = f"attention is {options.attention}" if flash else f"quantize is {options.quantize}"
        raise PluginError(
            f"{setting}, which needs an NVIDIA GPU, and torch finds none here. Take it out, or "
            "let the job run where there is one, with `device: cuda`.",
            code="conflicting-keys",
        )


def _of_file(options: ModelOptions) -> ModelOptions:
    """Return the options that determine which files are read, so they are read once for all methods of a job."""
    return ModelOptions(
        base_model=options.base_model, revision=options.revision, download=False,
        trust_remote_code=options.trust_remote_code, bf16=options.bf16, tuning="full", lora_r=1, lora_alpha=1,
        lora_dropout=0.0, target_modules="all-linear", experts=1, vocabulary=1, width=2, layers=1, heads=1,
    )  # fmt: skip


@lru_cache(maxsize=2)
def _outline(options: ModelOptions) -> Any:
    """Return the network without its weights, after checking that the files have all of them."""
    if place_of(options.base_model).gguf is None:
        return load_pretrained(options, device_map="meta")[0]
    config = config_of(options)
    with torch.device("meta"):
        return model_class(config).from_config(config)


def _probe(options: ModelOptions, batch: int) -> None:
    if (network := _copy(_of_file(options))) is None or network.config.is_encoder_decoder:
        return
    require_causal(network, options.base_model)
    require_alone(network, options.base_model, batch)


@lru_cache(maxsize=2)
def _copy(options: ModelOptions) -> Any:
    """Return a network of this kind with random weights and few layers; None for a vision model.

    It shows how weights are used, which does not depend on their values.
    """
    config = deepcopy(config_of(options))
    kind = model_class(config)
    if hasattr(config, "vision_config"):
        return None
    for name in ("quantization_config",):
        vars(config).pop(name, None)
    trust = {"trust_remote_code": options.trust_remote_code}
    with torch.device("meta"):
        size = sum(p.numel() for p in kind.from_config(config, **trust).parameters())
    if size > _SMALL:
        _shrink(config)
    with seeded(0, "cpu"):
        return kind.from_config(config, dtype=torch.float32, **trust).eval()


def _shrink(config: Any) -> None:
    """Reduce layers, vocabulary and inner widths; the kind of computation is unchanged."""
    layers = min(4, getattr(config, "num_hidden_layers", 4))
    for name, limit in (("vocab_size", 256), ("intermediate_size", 256), ("moe_intermediate_size", 128)):
        if isinstance(value := getattr(config, name, None), int):
            setattr(config, name, min(value, limit))
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(config, name, None)
    if isinstance(kinds := getattr(config, "layer_types", None), list):
        config.layer_types = kinds[:layers]
    config.num_hidden_layers = layers
