"""Loading that saves memory: in 4 bits, as QLoRA does, and over several cards."""

from typing import Any

import torch

from ianvs.base.errors import PluginError
from ianvs.testalgorithms.language.model_options import ModelOptions


def require_card(options: ModelOptions) -> None:
    """Raise PluginError where 4 bits are asked for and there is no card to compute with them."""
    if options.quantize != "none" and not torch.cuda.is_available():
        raise PluginError(
            f"quantize is {options.quantize}, which needs an NVIDIA card, and torch finds none here. Take it out, or "
            "let the job run where there is one, with `device: cuda`."
        )


def loading(options: ModelOptions) -> dict[str, Any]:
    """What `from_pretrained` is told besides. 4 bits: normal floats, constants quantized too (Dettmers et al. 2023)."""
    given: dict[str, Any] = {} if options.device_map is None else {"device_map": options.device_map}
    if options.quantize == "none":
        return given
    from transformers import BitsAndBytesConfig

    given.setdefault("device_map", {"": 0})
    given["quantization_config"] = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16 if options.bf16 else torch.float32,
    )
    return given


def made_ready(network: Any, options: ModelOptions) -> Any:
    """A network in 4 bits that adapters can be put into, with norms in 32 bits; another one as it is."""
    if options.quantize == "none":
        return network
    from peft import prepare_model_for_kbit_training

    return prepare_model_for_kbit_training(network, use_gradient_checkpointing=False)
