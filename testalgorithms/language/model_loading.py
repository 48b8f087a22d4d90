"""Loading that saves memory: in 4 bits, as QLoRA does, and over several cards."""

from importlib.util import find_spec
from typing import Any, Protocol

import torch

from ianvs.base.errors import PluginError, require_known
from ianvs.testalgorithms.language.model_places import place_of

QUANTIZED = ("none", "4bit")
DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")  # of accelerate


class Options(Protocol):
    """What is read here of ModelOptions."""

    @property
    def base_model(self) -> str: ...
    @property
    def tuning(self) -> str: ...
    @property
    def bf16(self) -> bool: ...
    @property
    def quantize(self) -> str: ...
    @property
    def device_map(self) -> str | None: ...
    @property
    def tiny(self) -> bool: ...


def require_loadable(options: Options) -> None:
    """Raise PluginError for what does not go together, or lacks a package."""
    require_known("quantize", options.quantize, QUANTIZED)
    if options.device_map is not None:
        require_known("device_map", options.device_map, DEVICE_MAPS)
        if options.tiny:
            raise PluginError(
                f"device_map is {options.device_map}; a tiny model has nothing to share out. Take it out."
            )
        _require("device_map", "accelerate", "llm")
    if options.quantize == "none":
        return
    if options.tuning != "lora":
        raise PluginError(f"quantize is 4bit, which freezes the model; tuning is '{options.tuning}'. Set tuning: lora.")
    if options.tiny or place_of(options.base_model).gguf is not None:
        what = (
            "a tiny model" if options.tiny else "a GGUF file, which is quantized already and is tuned in full numbers"
        )
        raise PluginError(f"quantize is 4bit, and base_model '{options.base_model}' is {what}. Take one of them out.")
    _require("quantize", "bitsandbytes", "quantized")


def require_card(options: Options) -> None:
    """Raise PluginError where 4 bits are asked for and there is no card to compute with them."""
    if options.quantize != "none" and not torch.cuda.is_available():
        raise PluginError(
            f"quantize is {options.quantize}, which needs an NVIDIA card, and torch finds none here. Take it out, or "
            "let the job run where there is one, with `device: cuda`."
        )


def loading(options: Options) -> dict[str, Any]:
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


def made_ready(network: Any, options: Options) -> Any:
    """A network in 4 bits that adapters can be put into, with norms in 32 bits; another one as it is."""
    if options.quantize == "none":
        return network
    from peft import prepare_model_for_kbit_training

    return prepare_model_for_kbit_training(network, use_gradient_checkpointing=False)


def _require(option: str, package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise PluginError(f"{option} needs {package}, which is not installed. Get it by: pip install 'ianvs[{extra}]'")
