"""Adapters of `peft`: the weights that they adapt, and their number."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from ianvs.base.errors import PluginError, closest
from ianvs.testalgorithms.language.model_options import ModelOptions
from ianvs.testalgorithms.language.sight import SEEING, is_tower

ALL_LINEAR = "all-linear"
MAMBAS = ("mamba", "mamba2", "falcon_mamba", "falcon_h1", "nemotron_h")
"""Kinds of models whose kernels read some weights directly and would bypass an adapter, so peft refuses these."""


def adapter_config(network: Any, options: ModelOptions) -> Any:
    """Return the `peft` configuration of an adapter for this network."""
    from peft import LoraConfig

    modules = options.targets
    config = LoraConfig(
        task_type="SEQ_2_SEQ_LM" if network.config.is_encoder_decoder else "CAUSAL_LM",
        r=options.lora_r,
        lora_alpha=options.lora_alpha,  # type: ignore[arg-type]
        lora_dropout=options.lora_dropout,
        use_dora=options.use_dora,
        use_rslora=options.use_rslora,
        target_modules=modules,
        target_parameters=_parameters(network, options),
        exclude_modules=_excluded(network, options),
    )
    if options.tuning == "moelora":
        from ianvs.testalgorithms.language.experts import with_experts

        config = with_experts(config, options.experts)
    return config


def adapted(network: Any, options: ModelOptions) -> Any:
    """Return the network with a new adapter. Raises PluginError if peft can't create it."""
    from peft import get_peft_model

    require_targets(network, options)
    with refused_by_peft(options):
        return get_peft_model(network, adapter_config(network, options))


@contextmanager
def refused_by_peft(options: ModelOptions) -> Iterator[None]:
    """Convert errors of peft about a network and its options to a PluginError that names them."""
    try:
        yield
    except (ValueError, TypeError, ImportError, NotImplementedError) as error:
        raise PluginError(
            f"peft can't put this adapter on base_model '{options.base_model}': {' '.join(str(error).split())}",
            code="refused-arguments",
        ) from error


def coverage(network: Any) -> tuple[int, int]:
    """Return (weights that an adapter changes, all weights of the base model)."""
    from peft.tuners.lora import LoraLayer, ParamWrapper

    under: dict[int, int] = {}
    for module in network.modules():
        if isinstance(module, LoraLayer):
            held = module.get_param() if isinstance(module, ParamWrapper) else module.get_base_layer().weight
            under[id(held)] = held.numel()
    whole = {id(p): p.numel() for name, p in network.named_parameters() if "lora_" not in name}
    return sum(under.values()), sum(whole.values())


def require_targets(network: Any, options: ModelOptions) -> None:
    """Raise PluginError if the network lacks something named in `target_modules` and `target_parameters`.

    peft accepts it if one of the modules exists, and then tunes less than was asked for.
    """
    if (names := options.target_parameters) is not None:
        weights = [name for name, _ in network.named_parameters()]
        if missing := [target for target in names if not any(_is_named(name, target) for name in weights)]:
            stacked = sorted({".".join(name.split(".")[-2:]) for name in _stacked(network)})
            has = f"Its stacked weights are: {', '.join(stacked)}." if stacked else "It has no stacked weights."
            raise PluginError(
                f"target_parameters names {', '.join(map(repr, missing))}, which base_model '{options.base_model}' "
                f"lacks.{closest(missing[0], stacked)} {has}",
                code="invalid-choice",
            )
    wanted = options.targets
    if wanted == ALL_LINEAR:
        return
    linear = [name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)]
    linear_names = sorted({name.rpartition(".")[2] for name in linear})
    every = [name for name, _ in network.named_modules()]
    if isinstance(wanted, str):
        missing = [] if any(re.fullmatch(wanted, name) for name in every) else [wanted]
    else:
        missing = [target for target in wanted if not any(_is_named(name, target) for name in every)]
    if missing:
        raise PluginError(
            f"target_modules names {', '.join(map(repr, missing))}, which base_model '{options.base_model}' lacks."
            f"{closest(str(missing[0]), linear_names)} Its linear layers are: {', '.join(linear_names)}.",
            code="invalid-choice",
        )


def _is_named(name: str, end: str) -> bool:
    return name == end or name.endswith(f".{end}")


def _stacked(network: Any) -> list[str]:
    """Return weights of several experts in one tensor, which belong to no linear layer."""
    return [name for name, weight in network.named_parameters() if weight.ndim == 3 and ".experts." in name]


def _parameters(network: Any, options: ModelOptions) -> list[str] | None:
    """Return the parameters named in the options; with all linear layers, those of experts, if peft can adapt them."""
    if options.target_parameters is not None:
        return list(options.target_parameters)
    plain = options.tuning == "lora" and not options.lora_dropout and not options.use_dora
    if not plain or options.targets != ALL_LINEAR:
        return None
    return sorted({".".join(name.split(".")[-2:]) for name in _stacked(network)}) or None


def _excluded(network: Any, options: ModelOptions) -> str | None:
    """Return a pattern of modules that get no adapter: the vision part, and those that peft refuses among all linear
    layers.
    """
    if any(is_tower(name) for name, _ in network.named_parameters()):
        return SEEING  # only the language part
    mamba = getattr(network.config, "model_type", None) in MAMBAS and options.targets == ALL_LINEAR
    return r"(.*\.)?(out_proj|conv1d)" if mamba else None
