"""Options of a language learner about its model, checked before anything is loaded."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ianvs.base.errors import PluginError, require_known
from ianvs.testalgorithms.language.model_places import place_of, require_installed
from ianvs.testalgorithms.language.numbers import above, at_least, within

TUNINGS = ("full", "lora", "moelora")
TINY = ("tiny", "tiny-stand-in")  # the longer name makes this clear in every report
TINY_VISION = ("tiny-vision", "tiny-vision-stand-in")
QUANTIZED = ("none", "4bit")
ATTENTIONS = ("eager", "sdpa", "flash_attention_2")
DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")  # of accelerate


@dataclass(frozen=True)
class ModelOptions:
    """The options; LanguageLearner describes them."""

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
    quantize: str = "none"
    device_map: str | None = None
    attention: str | None = None
    projector: str = "tuned"
    vision: str = "frozen"
    use_dora: bool = False
    use_rslora: bool = False
    target_parameters: Sequence[str] | None = None
    chat_template: str | None = None

    def __post_init__(self) -> None:
        require_known("tuning", self.tuning, TUNINGS)
        at_least(1, lora_r=self.lora_r, experts=self.experts, width=self.width, layers=self.layers, heads=self.heads)
        at_least(1, vocabulary=self.vocabulary)
        above(0, lora_alpha=self.lora_alpha)
        require_known("projector", self.projector, ("tuned", "frozen"))
        require_known("vision", self.vision, ("frozen", "tuned"))
        within(0, 1, lora_dropout=self.lora_dropout)
        if self.tuning == "moelora" and self.lora_r % self.experts:
            raise PluginError(
                f"lora_r is {self.lora_r}; it must be a multiple of the {self.experts} experts.", code="out-of-range"
            )
        if self.tiny and self.width % (2 * self.heads):  # positions turn pairs of each head's numbers
            raise PluginError(
                f"width is {self.width}; it must be a multiple of twice the {self.heads} heads.",
                code="out-of-range",
            )
        _require_switches(self)
        needed = [name for name in ("transformers", "peft") if name != "peft" or self.tuning != "full"]
        require_installed(f"tuning {self.tuning}", "llm", *needed)
        _require_loadable(self)
        if self.attention is not None:
            require_known("attention", self.attention, ATTENTIONS)
        if not self.tiny:
            place_of(self.base_model)
        _ = self.template

    @property
    def tiny(self) -> bool:
        return self.base_model in (*TINY, *TINY_VISION)

    @property
    def targets(self) -> str | list[str]:
        """`target_modules`: "all-linear", a regular expression, or names, which a text may list with commas."""
        if not isinstance(self.target_modules, str):
            return list(self.target_modules)
        if self.target_modules == "all-linear" or not re.fullmatch(r"[\w.]+(\s*,\s*[\w.]+)*", self.target_modules):
            return self.target_modules
        return [name.strip() for name in self.target_modules.split(",")]

    @property
    def template(self) -> str | None:
        """Return the text of the file `chat_template`; None for the model's own. Raises PluginError."""
        if self.chat_template is None:
            return None
        path = Path(self.chat_template).expanduser()
        if not path.is_file():
            raise PluginError(
                f"chat_template '{self.chat_template}': there is no file {path.absolute()}.", code="missing-file"
            )
        return path.read_text(encoding="utf-8")

    @property
    def seeing(self) -> dict[str, bool]:
        """Which parts of a vision model are tuned, besides its language part."""
        return {"projector": self.projector == "tuned", "vision": self.vision == "tuned"}

    @property
    def placed(self) -> bool:
        """Whether loading already puts the network on its final GPUs, so it must not be moved."""
        return self.quantize != "none" or self.device_map is not None

    @property
    def dtype(self) -> torch.dtype:
        """The type of the frozen base under an adapter; tuned weights keep 32 bits."""
        return torch.bfloat16 if self.bf16 and self.tuning != "full" else torch.float32


def _require_switches(options: ModelOptions) -> None:
    """Raise PluginError for switches of an adapter where there is none that could have them."""
    chosen = [name for name in ("use_dora", "use_rslora") if getattr(options, name)]
    chosen += ["target_parameters"] * (options.target_parameters is not None)
    if chosen and options.tuning != "lora":
        raise PluginError(
            f"{' and '.join(chosen)} {'are' if len(chosen) > 1 else 'is'} of a LoRA adapter, and tuning is "
            f"'{options.tuning}'. Set tuning: lora, or take {'them' if len(chosen) > 1 else 'it'} out.",
            code="conflicting-keys",
        )
    if isinstance(options.target_parameters, str):
        raise PluginError(
            f"target_parameters is {options.target_parameters!r}; it is a list of names, such as "
            "[[experts.gate_up_proj, experts.down_proj]] in `values`.",
            code="wrong-type",
        )


def _require_loadable(options: ModelOptions) -> None:
    """Raise PluginError for what does not go together, or lacks a package."""
    require_known("quantize", options.quantize, QUANTIZED)
    if options.device_map is not None:
        require_known("device_map", options.device_map, DEVICE_MAPS)
        if options.tiny:
            raise PluginError(
                f"device_map is {options.device_map}; a tiny model has nothing to share out. Take it out.",
                code="conflicting-keys",
            )
        require_installed("device_map", "llm", "accelerate")
    if options.quantize == "none":
        return
    if options.tuning != "lora":
        raise PluginError(
            f"quantize is 4bit, which freezes the model; tuning is '{options.tuning}'. Set tuning: lora.",
            code="conflicting-keys",
        )
    if options.tiny or place_of(options.base_model).gguf is not None:
        reason = (
            "a tiny model" if options.tiny else "a GGUF file, which is quantized already and is tuned in full numbers"
        )
        raise PluginError(
            f"quantize is 4bit, and base_model '{options.base_model}' is {reason}. Take one of them out.",
            code="conflicting-keys",
        )
    require_installed("quantize", "quantized", "bitsandbytes")
