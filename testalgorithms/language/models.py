"""Language models by name or folder, what of them is tuned, and how they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from core.errors import PluginError, closest
from testalgorithms.language.tiny import tiny_model, tiny_tokenizer

__all__ = ["ModelOptions", "build_model", "load_model", "save_model"]

TUNINGS = ("full", "lora", "moelora")
TINY = ("tiny", "tiny-stand-in")  # the longer name says in every report what it is


@dataclass(frozen=True)
class ModelOptions:
    """What LanguageLearner says of them."""

    base_model: str
    tuning: str
    revision: str | None
    download: bool
    trust_remote_code: bool
    lora_r: int
    lora_alpha: float
    lora_dropout: float
    target_modules: str | Sequence[str]
    experts: int
    vocabulary: int
    width: int
    layers: int
    heads: int
    bf16: bool

    def __post_init__(self) -> None:
        if self.tuning not in TUNINGS:
            raise PluginError(
                f"tuning '{self.tuning}' is not known.{closest(self.tuning, TUNINGS)} There are: {', '.join(TUNINGS)}."
            )
        if self.tuning == "moelora" and self.lora_r % self.experts:
            raise PluginError(f"lora_r is {self.lora_r}; it must be a multiple of the {self.experts} experts.")

    @property
    def tiny(self) -> bool:
        return self.base_model in TINY

    @property
    def dtype(self) -> torch.dtype:
        """Of the frozen base under an adapter; what is tuned itself keeps its 32 bits."""
        return torch.bfloat16 if self.bf16 and self.tuning != "full" else torch.float32


def build_model(options: ModelOptions, texts: Iterable[str], tokenizer: Any = None) -> tuple[Any, Any]:
    """(network, tokenizer), ready to be tuned; first weights are drawn by torch's generator.

    texts: for the tokenizer of a tiny model, unless there is one already.
    """
    if options.tiny:
        tokenizer = tokenizer or tiny_tokenizer(texts, options.vocabulary)
        network = tiny_model(tokenizer, options.width, options.layers, options.heads)
    else:
        network, tokenizer = _pretrained(options)
    if options.tuning != "full":
        from peft import get_peft_model

        network = get_peft_model(network, _adapter(options))
    return network, tokenizer


def save_model(network: Any, tokenizer: Any, options: ModelOptions, folder: Path) -> None:
    """Write what was tuned, in the form that `transformers` (model/) or `peft` (adapter/) loads, and the tokenizer."""
    if options.tuning != "full":
        # "auto" would ask the network whether the base model's vocabulary is as published.
        network.save_pretrained(folder / "adapter", save_embedding_layers=False)
    if options.tuning == "full" or options.tiny:
        base = network if options.tuning == "full" else network.get_base_model()
        _plain(network, base).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "tokenizer")


def load_model(options: ModelOptions, folder: Path) -> tuple[Any, Any]:
    """(network, tokenizer) as `save_model` has written them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

    network: Any
    kind: Any = PreTrainedTokenizerFast if options.tiny else AutoTokenizer
    tokenizer = kind.from_pretrained(folder / "tokenizer", trust_remote_code=options.trust_remote_code)
    if (folder / "model").is_dir():
        network = AutoModelForCausalLM.from_pretrained(
            folder / "model", dtype=options.dtype, trust_remote_code=options.trust_remote_code
        )
    else:
        network, _ = _pretrained(options)
    if options.tuning != "full":
        from peft import PeftModel

        network = PeftModel.from_pretrained(network, folder / "adapter", is_trainable=True, config=_adapter(options))
    return network, tokenizer


def _adapter(options: ModelOptions) -> Any:
    from peft import LoraConfig

    modules = options.target_modules
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=options.lora_r,
        lora_alpha=options.lora_alpha,  # type: ignore[arg-type]
        lora_dropout=options.lora_dropout,
        target_modules=modules if isinstance(modules, str) else list(modules),
    )
    if options.tuning == "moelora":
        from testalgorithms.language.experts import with_experts

        config = with_experts(config, options.experts)
    return config


def _pretrained(options: ModelOptions) -> tuple[Any, Any]:
    """(network, tokenizer) from a folder or from the Hugging Face cache; from the hub only if `download` allows it."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = str(Path(options.base_model).expanduser()) if options.base_model.startswith("~") else options.base_model
    offline = not options.download
    given = {"revision": options.revision or "main", "trust_remote_code": options.trust_remote_code}
    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=offline, **given)
        network = AutoModelForCausalLM.from_pretrained(name, local_files_only=offline, dtype=options.dtype, **given)
    except OSError as error:
        remedy = (
            f"It is neither a folder with a model nor in the Hugging Face cache. Give the folder, fetch it with "
            f"`hf download {name}`, or set `download: true`."
            if offline
            else f"{error}"
        )
        raise PluginError(f"base_model '{name}' can't be loaded. {remedy}") from error
    return network, tokenizer


def _plain(network: Any, base: Any) -> Any:
    """`base` as it was before adapters were put into it; the network that has them is not changed."""
    if base is network:
        return network
    weights = {
        name.replace(".base_layer", ""): tensor for name, tensor in base.state_dict().items() if "lora_" not in name
    }
    plain = type(base)(base.config)
    plain.load_state_dict(weights)
    return plain
